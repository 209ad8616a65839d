// Message for Fast DDS, written by hand after ../Message.idl, so that building needs no generator:
// serialised as plain XCDR1, as generated code does it.
#pragma once

#include <cstdint>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastdds/dds/topic/TopicDataType.hpp>

struct Message {
  uint32_t id = 0;
  uint32_t nonce = 0;
  std::vector<uint8_t> padding;
};

class MessageSupport : public eprosima::fastdds::dds::TopicDataType {
public:
  using Payload = eprosima::fastrtps::rtps::SerializedPayload_t;
  using Handle = eprosima::fastrtps::rtps::InstanceHandle_t;
  using Cdr = eprosima::fastcdr::Cdr;
  using Buffer = eprosima::fastcdr::FastBuffer;

  explicit MessageSupport(uint32_t payload_bytes)
  {
    setName("Message");
    m_typeSize = ENCAPSULATION_BYTES + payload_bytes + 3;
    m_isGetKeyDefined = false;
    // There is no generated type object to announce; names decide about a match.
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }

  bool serialize(void* data, Payload* payload) override
  {
    const auto& message = *static_cast<const Message*>(data);
    Buffer buffer(reinterpret_cast<char*>(payload->data), payload->max_size);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    payload->encapsulation = cdr.endianness() == Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    try {
      cdr.serialize_encapsulation();
      cdr << message.id << message.nonce << message.padding;
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    payload->length = static_cast<uint32_t>(cdr.getSerializedDataLength());
    return true;
  }

  bool deserialize(Payload* payload, void* data) override
  {
    auto& message = *static_cast<Message*>(data);
    Buffer buffer(reinterpret_cast<char*>(payload->data), payload->length);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    try {
      cdr.read_encapsulation();
      cdr >> message.id >> message.nonce >> message.padding;
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void* data) override
  {
    const auto* message = static_cast<const Message*>(data);
    return [message] {
      return static_cast<uint32_t>(ENCAPSULATION_BYTES + MIN_BYTES + message->padding.size());
    };
  }

  void* createData() override { return new Message; }

  void deleteData(void* data) override { delete static_cast<Message*>(data); }

  bool getKey(void*, Handle*, bool) override { return false; }

private:
  static constexpr uint32_t ENCAPSULATION_BYTES = 4;
};
