package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// mapped is a memory-mapped file of entries. It may be read by several
// goroutines and closed by any.
type mapped struct {
	path   string
	header header
	skip   int // bytes before the first entry

	mu    sync.RWMutex
	bytes []byte // nil once closed; guarded by mu
}

// openMapped maps a file behind a header with the given magic.
func openMapped(path, magic string) (*mapped, error) {
	m, err := mapWhole(path)
	if err != nil {
		return nil, err
	}
	m.header, err = decodeHeader(m.bytes, magic, int64(len(m.bytes)))
	if err != nil {
		_ = m.close() // the error of opening is the one to tell
		return nil, fmt.Errorf("data: %s: %w; delete it and prepare the text again", path, err)
	}
	m.skip = headerBytes
	return m, nil
}

// openRaw maps a file of bare uint16 ids, as nanoGPT writes them.
func openRaw(path string, vocab int) (*mapped, error) {
	m, err := mapWhole(path)
	if err != nil {
		return nil, err
	}
	size := len(m.bytes)
	if size%2 != 0 {
		_ = m.close() // the error of opening is the one to tell
		return nil, fmt.Errorf("data: %s: %w: %d bytes are no whole number of 16-bit ids; is it truncated, or another format?", path, ErrShard, size)
	}
	m.header = header{width: 2, vocab: vocab, endOfText: -1, count: int64(size / 2)}
	return m, nil
}

// openLLMC maps a file of llm.c.
func openLLMC(path string, vocab int) (*mapped, error) {
	m, err := mapWhole(path)
	if err != nil {
		return nil, err
	}
	if m.header, err = decodeLLMC(m.bytes, int64(len(m.bytes))); err != nil {
		_ = m.close() // the error of opening is the one to tell
		return nil, fmt.Errorf("data: %s: %w", path, err)
	}
	m.header.vocab, m.skip = vocab, llmcHeaderSize
	return m, nil
}

func mapWhole(path string) (*mapped, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer func() { _ = f.Close() }() // a mapping outlives its descriptor
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return nil, fmt.Errorf("data: %s: %w: not a file with tokens", path, ErrShard)
	}
	b, err := mapFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("data: mapping %s: %w", path, err)
	}
	return &mapped{path: path, bytes: b}, nil
}

// close unmaps the file; reading it afterwards is an error.
func (m *mapped) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes == nil {
		return nil
	}
	b := m.bytes
	m.bytes = nil
	return unmapFile(b)
}

// access calls read with the entries. Should the file have been cut short after
// it was mapped, the access faults, and that becomes an error.
func (m *mapped) access(read func(entries []byte) error) (err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.bytes == nil {
		return fmt.Errorf("data: %s: %w", m.path, ErrClosed)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = m.fault(fault)
		}
	}()
	return read(m.bytes[m.skip:])
}

// fault turns a memory fault into an error; any other panic goes on.
func (m *mapped) fault(reason any) error {
	var address interface{ Addr() uintptr }
	if err, ok := reason.(error); ok && errors.As(err, &address) {
		return fmt.Errorf("data: %s: %w: it was cut short or became unreadable while in use", m.path, ErrShard)
	}
	panic(reason)
}

// tokens copies the tokens from position at on into dst.
func (m *mapped) tokens(dst []int32, at int64) error {
	return m.access(func(entries []byte) error {
		switch m.header.width {
		case 2:
			for i, b := 0, entries[2*at:]; i < len(dst); i++ {
				dst[i] = int32(binary.LittleEndian.Uint16(b[2*i:]))
			}
		default:
			for i, b := 0, entries[4*at:]; i < len(dst); i++ {
				dst[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
			}
		}
		return m.inVocab(dst, at)
	})
}

// inVocab checks the ids read at position at.
func (m *mapped) inVocab(ids []int32, at int64) error {
	for i, id := range ids {
		if uint32(id) >= uint32(m.header.vocab) {
			return fmt.Errorf("data: %s: %w: token %d has id %d, outside the vocabulary of %d; use a model with the vocabulary of its tokenizer, or is the file damaged?",
				m.path, ErrShard, at+int64(i), uint32(id), m.header.vocab)
		}
	}
	return nil
}

// checkEdges reads the ids at both ends, so that a file of another tokenizer is known at once.
func (m *mapped) checkEdges() error {
	ids := make([]int32, min(m.header.count, 1<<16))
	if err := m.tokens(ids, 0); err != nil {
		return err
	}
	return m.tokens(ids, m.header.count-int64(len(ids)))
}

// after is the index of the first entry of an index file that is not below
// position.
func (m *mapped) after(position int64) (at int64, err error) {
	err = m.access(func(entries []byte) error {
		lo, hi := int64(0), m.header.count
		for lo < hi {
			mid := (lo + hi) / 2
			if int64(binary.LittleEndian.Uint64(entries[8*mid:])) < position {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		at = lo
		return nil
	})
	return at, err
}

// starts appends the entries from index at on that lie in [lo, hi).
func (m *mapped) starts(dst []int64, at, lo, hi int64) ([]int64, error) {
	err := m.access(func(entries []byte) error {
		for ; at < m.header.count; at++ {
			v := int64(binary.LittleEndian.Uint64(entries[8*at:]))
			if v >= hi {
				return nil
			}
			if v >= lo { // always, unless the file is damaged
				dst = append(dst, v)
			}
		}
		return nil
	})
	return dst, err
}

// check compares the contents with the checksum in the header.
func (m *mapped) check() error {
	return m.access(func(entries []byte) error {
		if sum := xxhash.Sum64(entries); sum != m.header.sum {
			return fmt.Errorf("data: %s: %w: checksum %016x, the header says %016x; delete it and prepare the text again", m.path, ErrShard, sum, m.header.sum)
		}
		return nil
	})
}

// shard is a file of tokens with its index, which raw files do not have.
type shard struct {
	*mapped
	index *mapped
}

// openShard opens a shard of ours.
func openShard(path string) (*shard, error) {
	m, err := openMapped(path, shardMagic)
	if err != nil {
		return nil, err
	}
	index, err := openMapped(indexName(path), indexMagic)
	if err != nil {
		_ = m.close() // the error of opening is the one to tell
		return nil, err
	}
	return &shard{m, index}, nil
}

// close unmaps both files.
func (s *shard) close() error {
	err := s.mapped.close()
	if s.index != nil {
		err = errors.Join(err, s.index.close())
	}
	return err
}

// documentsIn appends the positions in [lo, hi) at which documents begin.
func (s *shard) documentsIn(dst []int64, lo, hi int64) ([]int64, error) {
	if s.index == nil {
		return dst, nil
	}
	at, err := s.index.after(lo)
	if err != nil {
		return dst, err
	}
	return s.index.starts(dst, at, lo, hi)
}
