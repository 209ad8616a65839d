// Common part of the programs for Fast DDS: its headers, and type support written by hand, so that building needs no
// generator.
//
// Samples are serialised as plain XCDR1 (CDR_LE or CDR_BE), which for an appendable type is the same as for a final one.
// A sample type T has:
//   void serialize(Cdr&) const; void deserialize(Cdr&);
//   uint32_t serialized_bytes() const;  upper bound, with the encapsulation header
//   void serialize_key(Cdr&) const;     of a type with a key
//   KEY_BYTES                           upper bound of the serialised key, 0 without a key
// Keys are longer than the 16 bytes of a key hash: RTPS 2.5 §9.6.4.8 then asks for the MD5 of their big-endian CDR form.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/md5.h>

namespace fast = eprosima::fastdds::dds;
using Cdr = eprosima::fastcdr::Cdr;

// Every failing call ends the program: it has nothing to fall back to.
template<typename T> static T* must(T* entity, const char* what)
{
  if (entity == nullptr) {
    fprintf(stderr, "%s failed\n", what);
    exit(EXIT_FAILURE);
  }
  return entity;
}

static inline eprosima::fastrtps::Duration_t milliseconds(uint32_t number)
{
  return eprosima::fastrtps::Duration_t(number / 1000.0L);
}

enum { ENCAPSULATION_BYTES = 4 };

template<typename T> class Support : public fast::TopicDataType {
public:
  using Payload = eprosima::fastrtps::rtps::SerializedPayload_t;
  using Handle = eprosima::fastrtps::rtps::InstanceHandle_t;
  using Buffer = eprosima::fastcdr::FastBuffer;

  // The history grows for samples longer than `bytes`.
  Support(const char* name, uint32_t bytes)
  {
    setName(name);
    m_typeSize = bytes;
    m_isGetKeyDefined = T::KEY_BYTES > 0;
    // There is no generated type object to announce; names decide about a match.
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }

  bool serialize(void* data, Payload* payload) override
  {
    Buffer buffer(reinterpret_cast<char*>(payload->data), payload->max_size);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    payload->encapsulation = cdr.endianness() == Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    try {
      cdr.serialize_encapsulation();
      static_cast<const T*>(data)->serialize(cdr);
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    payload->length = static_cast<uint32_t>(cdr.getSerializedDataLength());
    return true;
  }

  bool deserialize(Payload* payload, void* data) override
  {
    Buffer buffer(reinterpret_cast<char*>(payload->data), payload->length);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    try {
      cdr.read_encapsulation();
      static_cast<T*>(data)->deserialize(cdr);
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void* data) override
  {
    return [data] { return static_cast<const T*>(data)->serialized_bytes(); };
  }

  void* createData() override { return new T; }

  void deleteData(void* data) override { delete static_cast<T*>(data); }

  bool getKey(void* data, Handle* handle, bool /* force_md5: keys are always hashed */) override
  {
    if constexpr (T::KEY_BYTES == 0) {
      return false;
    } else {
      char key[T::KEY_BYTES];
      Buffer buffer(key, sizeof key);
      Cdr cdr(buffer, Cdr::BIG_ENDIANNESS);
      try {
        static_cast<const T*>(data)->serialize_key(cdr);
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
  }
};
