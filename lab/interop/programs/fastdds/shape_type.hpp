// ShapeType for Fast DDS, after ../ShapeType.idl.
#pragma once

#include "common.hpp"

struct ShapeType {
  enum { KEY_BYTES = 4 + MAX_COLOR_CHARACTERS + 1 };

  std::string color;
  int32_t x = 0;
  int32_t y = 0;
  int32_t shapesize = 0;
  std::vector<uint8_t> additional_payload_size;

  void serialize(Cdr& cdr) const { cdr << color << x << y << shapesize << additional_payload_size; }
  void deserialize(Cdr& cdr) { cdr >> color >> x >> y >> shapesize >> additional_payload_size; }
  void serialize_key(Cdr& cdr) const { cdr << color; }
  uint32_t serialized_bytes() const { return bytes_of(color.size(), additional_payload_size.size()); }

  // Encapsulation header, string, three numbers, sequence; each length and number on a multiple of 4.
  static uint32_t bytes_of(size_t color_characters, size_t payload_bytes)
  {
    const size_t string_bytes = (4 + color_characters + 1 + 3) / 4 * 4;
    return static_cast<uint32_t>(ENCAPSULATION_BYTES + string_bytes + 3 * 4 + 4 + payload_bytes);
  }
};

static inline Support<ShapeType>* shape_support()
{
  return new Support<ShapeType>("ShapeType", ShapeType::bytes_of(MAX_COLOR_CHARACTERS, 0));
}
