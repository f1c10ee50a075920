package fulltext

// Stats describes an index at one moment.
type Stats struct {
	Language string
	// Documents are live; Dead ones wait for a merge.
	Documents, Dead int
	// Words is the sum of the live documents' lengths, without stop words.
	Words int64
	// Segments and DiskBytes are what the manifest names.
	Segments  int
	DiskBytes int64
	// MemoryBytes is about what has not been flushed.
	MemoryBytes int
	// Seq is the last change, Watermark the last one on disk.
	Seq, Watermark int64
}

// Stats returns figures for a human.
func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := Stats{
		Language: x.lang.name, Documents: x.docs, Words: x.tokens, Segments: len(x.segments),
		Seq: x.seq, Watermark: x.watermark,
	}
	for _, seg := range x.segments {
		s.Dead += seg.dead.n
		s.DiskBytes += seg.size
	}
	for _, m := range []*memPart{x.mem, x.frozen} {
		if m != nil {
			s.Dead += m.dead.n
			s.MemoryBytes += m.size
		}
	}
	return s
}
