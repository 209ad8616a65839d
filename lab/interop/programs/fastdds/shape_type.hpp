// ShapeType for Fast DDS, written by hand after ../ShapeType.idl, so that building needs no generator.
//
// Serialised as plain XCDR1 (CDR_LE or CDR_BE), which for an appendable type is the same as for a
// final one. The key is a string of up to 128 characters, longer than the 16 bytes of a key hash:
// RTPS 2.5 §9.6.4.8 then asks for the MD5 of its big-endian CDR form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastrtps/utils/md5.h>

struct ShapeType {
  std::string color;
  int32_t x = 0;
  int32_t y = 0;
  int32_t shapesize = 0;
  std::vector<uint8_t> additional_payload_size;
};

class ShapeTypeSupport : public eprosima::fastdds::dds::TopicDataType {
public:
  using Payload = eprosima::fastrtps::rtps::SerializedPayload_t;
  using Handle = eprosima::fastrtps::rtps::InstanceHandle_t;
  using Cdr = eprosima::fastcdr::Cdr;
  using Buffer = eprosima::fastcdr::FastBuffer;

  ShapeTypeSupport()
  {
    setName("ShapeType");
    m_typeSize = serialized_bytes(MAX_COLOR_CHARACTERS, 0); // history grows for longer ones
    m_isGetKeyDefined = true;
    // There is no generated type object to announce; names decide about a match.
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }

  bool serialize(void* data, Payload* payload) override
  {
    const auto& shape = *static_cast<const ShapeType*>(data);
    Buffer buffer(reinterpret_cast<char*>(payload->data), payload->max_size);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    payload->encapsulation = cdr.endianness() == Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    try {
      cdr.serialize_encapsulation();
      cdr << shape.color << shape.x << shape.y << shape.shapesize << shape.additional_payload_size;
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    payload->length = static_cast<uint32_t>(cdr.getSerializedDataLength());
    return true;
  }

  bool deserialize(Payload* payload, void* data) override
  {
    auto& shape = *static_cast<ShapeType*>(data);
    Buffer buffer(reinterpret_cast<char*>(payload->data), payload->length);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    try {
      cdr.read_encapsulation();
      cdr >> shape.color >> shape.x >> shape.y >> shape.shapesize >> shape.additional_payload_size;
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void* data) override
  {
    const auto* shape = static_cast<const ShapeType*>(data);
    return [shape] { return serialized_bytes(shape->color.size(), shape->additional_payload_size.size()); };
  }

  void* createData() override { return new ShapeType; }

  void deleteData(void* data) override { delete static_cast<ShapeType*>(data); }

  bool getKey(void* data, Handle* handle, bool /* force_md5: the key is always hashed */) override
  {
    const auto& shape = *static_cast<const ShapeType*>(data);
    char key[4 + MAX_COLOR_CHARACTERS + 1];
    Buffer buffer(key, sizeof key);
    Cdr cdr(buffer, Cdr::BIG_ENDIANNESS);
    try {
      cdr << shape.color;
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    MD5 hash;
    hash.init();
    hash.update(reinterpret_cast<unsigned char*>(key), static_cast<unsigned int>(cdr.getSerializedDataLength()));
    hash.finalize();
    for (size_t i = 0; i < sizeof hash.digest; i++)
      handle->value[i] = hash.digest[i];
    return true;
  }

private:
  // Encapsulation header, string, three numbers, sequence; each length and number on a multiple of 4.
  static uint32_t serialized_bytes(size_t color_characters, size_t payload_bytes)
  {
    const size_t string_bytes = (4 + color_characters + 1 + 3) / 4 * 4;
    return static_cast<uint32_t>(4 + string_bytes + 3 * 4 + 4 + payload_bytes);
  }
};
