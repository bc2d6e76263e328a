// What stands before the coefficients of a JPEG: sizes, tables, and which colours it has.
//
//     ff d8                             the beginning
//     ff NN, uint16 BE n, bytes[n-2]    segments: tables, the frame, notes; the last one is the scan's (da)
//     bits                              coefficients, in which a byte ff is written as ff 00
//     ff d0, bits, ff d1, bits, ...     where every so many units are read on their own
//     ff d9                             the end
//
// Only what most JPEGs are is read: one scan of Huffman codes, 8 bits, grey or YCbCr whose colours may be
// halved. The format is that of ITU-T T.81.
#pragma once

#include "core/pictures/jpeg_huffman.h"

namespace recordkit {

struct JpegComponent {
  uint8_t id;
  uint8_t across, down;   // blocks of a unit, either way
  uint8_t steps, dc, ac;  // its tables, by number
};

struct JpegHeader {
  size_t height, width;
  std::vector<JpegComponent> components;  // one, or three
  size_t restart_interval;                // in units; 0: none
  Bytes scan;                             // from the first coefficient to the end of the file

  std::array<std::array<float, kBlockSize>, 4> steps;  // that coefficients are multiples of, in rows
  std::array<HuffmanTable, 4> dc, ac;
};

// Fills a header, in which tables may be left from another file. False if it is another kind of JPEG, or not
// a sound one: libjpeg, which says more, is to decide then.
bool read_jpeg_header(Bytes file, JpegHeader& header);

}  // namespace recordkit
