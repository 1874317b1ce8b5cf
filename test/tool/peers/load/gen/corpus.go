package gen

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Corpus is one or more real command runs as their engine sent them: bodies of spans and log records, in order, one run
// after the other. Each copy gets trace ids and span ids of its own, in the layout that the sink counts; all else stays
// as it was, lengths included.
type Corpus struct {
	Bodies []CorpusBody
	Spans  int
	runs   int
}

type CorpusBody struct {
	raw    []byte
	run    int // which of the runs it is of
	Logs   bool
	Spans  int
	ids    []idRef // binary span ids, wherever they stand: own, parent, link, log record
	traces []int   // binary trace ids
	texts  []int   // the trace id as 32 hex digits
	uuids  []int   // and as a UUID
}

type idRef struct {
	off int
	seq uint32
}

// LoadCorpus reads *traces*.bin and *logs*.bin of each folder (commas between them) in the order of their names.
func LoadCorpus(dirs string) *Corpus {
	c := &Corpus{}
	seqs := map[uint64]uint32{}
	for _, dir := range strings.Split(dirs, ",") {
		c.addRun(dir, seqs)
	}
	c.Spans = len(seqs)
	for i := range c.Bodies {
		b := &c.Bodies[i]
		for o := 0; o+8 <= len(b.raw); {
			if q, ok := seqs[binary.BigEndian.Uint64(b.raw[o:])]; ok {
				b.ids = append(b.ids, idRef{o, q})
				o += 8
			} else {
				o++
			}
		}
	}
	return c
}

// addRun reads a folder, which holds the bodies of one trace. seqs numbers span ids.
func (c *Corpus) addRun(dir string, seqs map[uint64]uint32) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.bin"))
	sort.Strings(files)
	if len(files) == 0 {
		panic("no bodies in " + dir)
	}
	first := len(c.Bodies)
	var trace []byte
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			panic(err)
		}
		b := CorpusBody{raw: raw, run: c.runs, Logs: strings.Contains(filepath.Base(f), "logs")}
		if !b.Logs {
			var m coltrace.ExportTraceServiceRequest
			if err := proto.Unmarshal(raw, &m); err != nil {
				panic(err)
			}
			for _, rs := range m.ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					for _, s := range ss.Spans {
						id := binary.BigEndian.Uint64(s.SpanId)
						if _, ok := seqs[id]; !ok {
							seqs[id] = uint32(len(seqs) + 1)
						}
						if trace == nil {
							trace = s.TraceId
						} else if !bytes.Equal(trace, s.TraceId) {
							panic("more than one trace in " + dir)
						}
						b.Spans++
					}
				}
			}
		}
		c.Bodies = append(c.Bodies, b)
	}
	text := []byte(hex.EncodeToString(trace))
	uuid := []byte(uuidOf(trace))
	for i := first; i < len(c.Bodies); i++ {
		b := &c.Bodies[i]
		b.traces, b.texts, b.uuids = all(b.raw, trace), all(b.raw, text), all(b.raw, uuid)
	}
	c.runs++
}

func all(raw, what []byte) (out []int) {
	for from := 0; ; {
		i := bytes.Index(raw[from:], what)
		if i < 0 {
			return
		}
		out = append(out, from+i)
		from += i + len(what)
	}
}

func uuidOf(t []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", t[:4], t[4:6], t[6:8], t[8:10], t[10:16])
}

// Fill writes body i of the given copy into dst (grown as needed) and returns it.
func (c *Corpus) Fill(dst []byte, run, copyNo uint32, i int) []byte {
	b := &c.Bodies[i]
	dst = append(dst[:0], b.raw...)
	var t [16]byte
	binary.BigEndian.PutUint64(t[:], 0x01B0B00000007000|uint64(run)<<16&0x0000FFFFFFFF0000)
	binary.BigEndian.PutUint64(t[8:], 0x8000000000000000|uint64(copyNo)*uint64(c.runs)+uint64(b.run)+1)
	for _, o := range b.traces {
		copy(dst[o:], t[:])
	}
	for _, o := range b.texts {
		hex.Encode(dst[o:], t[:])
	}
	u := uuidOf(t[:])
	for _, o := range b.uuids {
		copy(dst[o:], u)
	}
	for _, r := range b.ids {
		binary.BigEndian.PutUint32(dst[r.off:], run)
		binary.BigEndian.PutUint32(dst[r.off+4:], copyNo*uint32(c.Spans)+r.seq)
	}
	return dst
}
