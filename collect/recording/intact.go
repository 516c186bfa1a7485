package recording

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is a Frame's.
func sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Intact tells that every frame of an indexed recording is what was written. When one is
// not, checkpoints behind it say nothing of what is lost there: Reindexed makes some
// that do. It reads the whole file.
func (r *File) Intact() bool {
	var b []byte
	for i := range r.Frames {
		f := &r.Frames[i]
		if f.Size > maxFrame {
			return false
		}
		if f.Sum == 0 {
			if out, err := r.frame(i, b); err != nil {
				return false
			} else {
				b = out
			}
			continue
		}
		if int64(cap(b)) < f.Size {
			b = make([]byte, f.Size)
		}
		b = b[:f.Size]
		if _, err := r.f.ReadAt(b, f.Offset); err != nil || sum(b) != f.Sum {
			return false
		}
	}
	return true
}
