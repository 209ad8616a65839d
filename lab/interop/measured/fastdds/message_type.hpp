// Message for Fast DDS, after ../Message.idl.
#pragma once

#include "../../programs/fastdds/common.hpp"

struct Message {
  enum { KEY_BYTES = 0 };

  uint32_t id = 0;
  uint32_t nonce = 0;
  std::vector<uint8_t> padding;

  void serialize(Cdr& cdr) const { cdr << id << nonce << padding; }
  void deserialize(Cdr& cdr) { cdr >> id >> nonce >> padding; }
  uint32_t serialized_bytes() const
  {
    return static_cast<uint32_t>(ENCAPSULATION_BYTES + MIN_BYTES + padding.size());
  }
};

static inline Support<Message>* message_support(uint32_t payload_bytes)
{
  return new Support<Message>("Message", ENCAPSULATION_BYTES + payload_bytes + 3);
}
