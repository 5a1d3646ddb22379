package data

import (
	"encoding/binary"
	"fmt"
)

// A shard is a file of token ids, little endian, behind a header of 64 bytes:
//
//	 0  magic "carvetok"
//	 8  version 1        uint32
//	12  bytes a token    uint32, 2 or 4
//	16  vocabulary size  uint32
//	20  end of text      uint32
//	24  tokens           uint64
//	32  XXH64 of the ids uint64
//	40  zero
//
// Beside name.bin lies name.idx: the positions of the tokens at which documents
// begin, uint64 each, behind the same header with magic "carvedoc", 8 bytes an
// entry, and the number of documents in place of the tokens.
const (
	shardMagic   = "carvetok"
	indexMagic   = "carvedoc"
	shardVersion = 1
	headerBytes  = 64
	shardExt     = ".bin"
	indexExt     = ".idx"
)

// header is the beginning of a shard or of its index.
type header struct {
	magic     string
	width     int // bytes of an entry
	vocab     int
	endOfText int32
	count     int64
	sum       uint64
}

func (h header) encode() []byte {
	b := make([]byte, headerBytes)
	copy(b, h.magic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], shardVersion)
	le.PutUint32(b[12:], uint32(h.width))
	le.PutUint32(b[16:], uint32(h.vocab))
	le.PutUint32(b[20:], uint32(h.endOfText))
	le.PutUint64(b[24:], uint64(h.count))
	le.PutUint64(b[32:], h.sum)
	return b
}

// decodeHeader reads the header of a file of the given size and checks that the
// two agree. The errors wrap ErrShard and lack the name of the file.
func decodeHeader(b []byte, magic string, size int64) (header, error) {
	if len(b) < headerBytes {
		return header{}, fmt.Errorf("%w: %d bytes, too short for a header", ErrShard, size)
	}
	if string(b[:8]) != magic {
		return header{}, fmt.Errorf("%w: begins with %q, not %q", ErrShard, b[:8], magic)
	}
	le := binary.LittleEndian
	h := header{magic, int(le.Uint32(b[12:])), int(le.Uint32(b[16:])), int32(le.Uint32(b[20:])), int64(le.Uint64(b[24:])), le.Uint64(b[32:])}
	switch version := le.Uint32(b[8:]); {
	case version != shardVersion:
		return header{}, fmt.Errorf("%w: version %d; this carve reads %d", ErrShard, version, shardVersion)
	case magic == shardMagic && h.width != 2 && h.width != 4, magic == indexMagic && h.width != 8:
		return header{}, fmt.Errorf("%w: %d bytes an entry", ErrShard, h.width)
	case h.vocab < 1 || h.vocab > maxVocab || h.width == 2 && h.vocab > 1<<16:
		return header{}, fmt.Errorf("%w: vocabulary of %d in %d bytes a token", ErrShard, h.vocab, h.width)
	case h.endOfText < 0 || int(h.endOfText) >= h.vocab:
		return header{}, fmt.Errorf("%w: end-of-text id %d in a vocabulary of %d", ErrShard, h.endOfText, h.vocab)
	case h.count < 0 || h.count > size || headerBytes+h.count*int64(h.width) != size:
		return header{}, fmt.Errorf("%w: %d bytes, but its header promises %d entries of %d bytes; it is truncated or was not written whole", ErrShard, size, h.count, h.width)
	}
	return h, nil
}

// maxVocab bounds the vocabulary of a shard; ids are int32.
const maxVocab = 1 << 24

// widthOf is the bytes that an id of the vocabulary takes in a shard.
func widthOf(vocab int) int {
	if vocab <= 1<<16 {
		return 2
	}
	return 4
}
