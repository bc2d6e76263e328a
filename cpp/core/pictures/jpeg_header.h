// The headers of a JPEG: sizes, tables and colours.
//
//     ff d8                             the beginning
//     ff NN, uint16 BE n, bytes[n-2]    segments: tables, the frame, notes; the last one is the scan's (da)
//     bits                              coefficients, in which a byte ff is written as ff 00
//     ff d0, bits, ff d1, bits, ...     with a restart interval
//     ff d9                             the end
//
// Reads only the most common kind of JPEG: one scan, Huffman codes, 8 bits, grey or YCbCr, optionally with
// colours at half resolution. The format is ITU-T T.81.
#pragma once

#include "core/pictures/jpeg_huffman.h"

namespace recordkit {

struct JpegComponent {
  uint8_t id;
  uint8_t across, down;   // blocks of a unit, either way
  uint8_t steps, dc, ac;  // the numbers of its tables
};

struct JpegHeader {
  size_t height, width;
  std::vector<JpegComponent> components;  // one, or three
  size_t restart_interval;                // in units; 0: none
  Bytes scan;                             // from the first coefficient to the end of the file

  std::array<std::array<float, kBlockSize>, 4> steps;  // quantization steps, in rows
  std::array<HuffmanTable, 4> dc, ac;
};

// Fills a header, which may keep tables of another file. False for other kinds of JPEG and for damaged ones:
// then libjpeg decides, whose errors say more.
bool read_jpeg_header(Bytes file, JpegHeader& header);

}  // namespace recordkit
