package fulltext

// Stats describes an index at one moment.
type Stats struct {
	Documents, Dead int
	Words           int64
	Segments        int
	DiskBytes       int64
	Seq, Watermark  int64
}

func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	st := Stats{Segments: len(x.segments), Seq: x.seq, Watermark: x.watermark}
	for _, p := range x.parts() {
		st.Documents += len(p.ids) - p.gone
		st.Dead += p.gone
		st.Words += p.live
	}
	for _, s := range x.segments {
		st.DiskBytes += s.size
	}
	return st
}

// Len returns the number of documents.
func (x *Index) Len() int { return x.Stats().Documents }

// quiet merges what there is to merge and returns when it is done.
func (x *Index) quiet() error { return x.mergeAll() }
