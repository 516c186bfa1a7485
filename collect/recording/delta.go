package recording

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// Checkpoints that follow each other are mostly the same. A delta tells one by the one
// before: parts of that are taken over, and what stands between them is given. It is
//
//	length of the whole, length of the parts, parts, what stands between
//
// where a part is how many bytes stand before it, how many are taken over, and how far
// from the end of the part before these begin. Numbers are varints.

// deltaBlock is how many bytes must be alike for a part.
const deltaBlock = 16

var errDelta = errors.New("a delta that nobody wrote")

// appendDelta appends to out what makes b of base.
func appendDelta(out, base, b []byte) []byte {
	// The blocks of base by their hash, from 1; of those with the same one the last.
	size := bits.Len(uint(len(base)/deltaBlock)) + 1
	blocks := make([]uint32, 1<<size)
	for at := 0; at+deltaBlock <= len(base); at += deltaBlock {
		blocks[blockHash(base[at:], size)] = uint32(at) + 1
	}
	var parts, between []byte
	done, end := 0, 0 // what is told of b, and where the last part ends in base
	part := func(at, n, from int) {
		parts = binary.AppendUvarint(parts, uint64(at-done))
		parts = binary.AppendUvarint(parts, uint64(n))
		parts = binary.AppendVarint(parts, int64(from-end))
		between = append(between, b[done:at]...)
		done, end = at+n, from+n
	}
	for at := 0; at+deltaBlock <= len(b); {
		from := end + at - done // where it goes on if nothing was added or taken away
		if !sameBlock(base, from, b, at) {
			if from = int(blocks[blockHash(b[at:], size)]) - 1; !sameBlock(base, from, b, at) {
				at++
				continue
			}
		}
		for at > done && from > 0 && b[at-1] == base[from-1] {
			at, from = at-1, from-1
		}
		n := alike(base[from:], b[at:])
		part(at, n, from)
		at += n
	}
	if done < len(b) {
		part(len(b), 0, end)
	}
	out = binary.AppendUvarint(out, uint64(len(b)))
	out = binary.AppendUvarint(out, uint64(len(parts)))
	return append(append(out, parts...), between...)
}

func blockHash(b []byte, size int) uint64 {
	x := binary.LittleEndian.Uint64(b)*0x9E3779B97F4A7C15 ^ binary.LittleEndian.Uint64(b[8:])*0xC2B2AE3D27D4EB4F
	return x * 0x9E3779B97F4A7C15 >> (64 - size)
}

func sameBlock(base []byte, from int, b []byte, at int) bool {
	return from >= 0 && from+deltaBlock <= len(base) && [deltaBlock]byte(base[from:]) == [deltaBlock]byte(b[at:])
}

// alike is how many bytes two have in common from their beginning on.
func alike(a, b []byte) (n int) {
	for len(a)-n >= 8 && len(b)-n >= 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
		n += 8
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// applyDelta makes of base what appendDelta was given, in room where that is enough.
func applyDelta(room, base, delta []byte) ([]byte, error) {
	number := func() int {
		n, size := binary.Uvarint(delta)
		if size <= 0 || n > maxFrame {
			delta = nil
			return -1
		}
		delta = delta[size:]
		return int(n)
	}
	length, size := number(), number()
	if length < 0 || size < 0 || size > len(delta) {
		return nil, errDelta
	}
	between := delta[size:]
	delta = delta[:size]
	out := slices.Grow(room[:0], length)
	end := 0
	for len(delta) > 0 {
		before, n := number(), number()
		far, size := binary.Varint(delta)
		if before < 0 || n < 0 || size <= 0 || far < -maxFrame || far > maxFrame {
			return nil, errDelta
		}
		delta = delta[size:]
		from := end + int(far)
		if before > len(between) || from < 0 || n > len(base)-from || before+n > length-len(out) {
			return nil, errDelta
		}
		out = append(append(out, between[:before]...), base[from:from+n]...)
		between, end = between[before:], from+n
	}
	if len(out) != length || len(between) > 0 {
		return nil, errDelta
	}
	return out, nil
}
