package collect_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

// scenarioLines are the events of all scenarios as lines.
func scenarioLines(t testing.TB) (out [][]byte) {
	t.Helper()
	files, err := filepath.Glob("../testdata/scenarios/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sc := timelinetest.New()
		for _, part := range txtar.Parse(data).Files {
			if word, _, _ := strings.Cut(part.Name, " "); word != "events" {
				continue
			}
			events, err := sc.Parse(string(part.Data))
			if err != nil {
				t.Fatal(f, err)
			}
			for _, e := range events {
				b, err := collect.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, b)
			}
		}
	}
	return out
}

// filled has something in every field of a payload, as its writers write it.
func filled(rnd *rand.Rand, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *netip.Addr:
		*x = netip.AddrFrom4([4]byte{10, 0, 0, byte(rnd.IntN(256))})
		return
	case *netip.AddrPort:
		*x = netip.MustParseAddrPort(fmt.Sprintf("[fd00::%x]:%d", rnd.IntN(65536), rnd.IntN(65536)))
		return
	case *netip.Prefix:
		*x = netip.MustParsePrefix("10.0.0.0/8")
		return
	case *time.Time:
		*x = time.Unix(rnd.Int64N(2e9), rnd.Int64N(1e9)).UTC()
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"web", "世界", "a b", ""}[rnd.IntN(4)])
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(int32(rnd.Uint32())))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(rnd.Uint32()))
	case reflect.Float64:
		v.SetFloat(float64(rnd.IntN(1e6)) / 1000)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(rnd, v.Elem())
	case reflect.Slice:
		n := rnd.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			filled(rnd, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range rnd.IntN(4) {
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", i)), reflect.ValueOf("value"))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			filled(rnd, v.Field(i))
		}
	}
}

func sameAsJSON(t *testing.T, line []byte) {
	t.Helper()
	got, err := collect.Unmarshal(line)
	want, wrong := collect.UnmarshalAny(line)
	if (err == nil) != (wrong == nil) || err != nil && err.Error() != wrong.Error() {
		t.Fatalf("%s\n%v, by encoding/json %v", line, err, wrong)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s\nis read as\n%+v %+v\nby encoding/json\n%+v %+v", line, got, got.Payload, want, want.Payload)
	}
}

// TestLinesAreReadAsEncodingJSONReadsThem, and what Marshal writes without it.
func TestLinesAreReadAsEncodingJSONReadsThem(t *testing.T) {
	lines := scenarioLines(t)
	if len(lines) < 1000 {
		t.Fatalf("%d lines", len(lines))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		for _, p := range collect.Payloads() {
			filled(rnd, reflect.ValueOf(p).Elem())
			e := collect.Event{Seq: rnd.Uint64N(1e9), At: time.Unix(rnd.Int64N(2e9), 0), NotBefore: time.Unix(1, 0), Source: collect.RulesSource("n"), Op: collect.OpAdded,
				Object: collect.ObjectKey{Kind: "Pod", Namespace: "a", Name: "b"}, UID: "u", ResourceVersion: rnd.Uint64(), Payload: p}
			b, err := collect.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, b)
		}
	}
	for _, line := range lines {
		if !collect.Quick(line) && !bytes.ContainsRune(line, '\\') { // escapes are encoding/json's
			t.Errorf("read by encoding/json: %s", line)
		}
		sameAsJSON(t, line)
		for range 3 { // and what is nearly one
			bad := bytes.Clone(line)
			i := rnd.IntN(len(bad))
			switch rnd.IntN(4) {
			case 0:
				bad[i] = byte(rnd.IntN(256))
			case 1:
				bad = append(bad[:i], bad[min(len(bad), i+1+rnd.IntN(8)):]...)
			case 2:
				const signs = `{}[]",:0-.e\ n`
				bad[i] = signs[rnd.IntN(len(signs))]
			case 3:
				j := rnd.IntN(len(bad))
				bad = append(bad[:i:i], append(bytes.Clone(line[min(i, j):max(i, j)]), bad[i:]...)...)
			}
			sameAsJSON(t, bad)
		}
	}
}

// FuzzLinesAreReadAsEncodingJSONReadsThem is the same for any line.
func FuzzLinesAreReadAsEncodingJSONReadsThem(f *testing.F) {
	for i, line := range scenarioLines(f) {
		if i%40 == 0 {
			f.Add(line)
		}
	}
	for _, s := range []string{
		`{"at":"2026-03-01T12:00:00Z","src":"clock","type":"advance"}`,
		`{"at":"2026-03-01T12:00:00+01:00","src":"clock","type":"advance","data":{}}`,
		`{"at":"2026-03-01T12:00:00Z","type":"proxy","data":{"healthy":null,"syncSeconds":-0.5e3,"syncCount":01}}`,
		`{"at":"2026-03-01T12:00:00Z","type":"pod","data":{"labels":{"a":"b","a":"c"},"ips":["10.0.0.1",""],"Phase":"x","grace":-9223372036854775808}}`,
		`{"at":"2026-03-01T12:00:00Z","type":"pod","type":"node","data":{"labels":{},"addresses":[]}} `,
		`{"seq":18446744073709551616,"at":"2026-03-01T12:00:00Z","type":"rules","data":{"generation":4294967296}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) { sameAsJSON(t, line) })
}

// TestALineThatIsTooLongCostsItselfOnly, from a reader and in memory.
func TestALineThatIsTooLongCostsItselfOnly(t *testing.T) {
	line := `{"at":"2026-03-01T12:00:00Z","src":"clock","type":"advance"}` + "\n"
	long := `{"at":"2026-03-01T12:00:00Z","src":"user","type":"action","data":{"text":"` + strings.Repeat("x", collect.MaxLine) + `"}}` + "\n"
	for name, r := range map[string]*collect.Reader{
		"a reader": collect.NewReader(strings.NewReader(line + long + line + strings.TrimSuffix(long, "\n"))),
		"memory":   collect.NewLineReader([]byte(line+long+line+strings.TrimSuffix(long, "\n")), nil),
	} {
		for i, want := range []string{"", "line 2: not a kconverge event line: it is longer than 16777216 bytes", "", "line 4: not a kconverge event line: it is longer than 16777216 bytes"} {
			_, err := r.Read()
			if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
				t.Fatalf("%s, line %d: %v", name, i+1, err)
			}
		}
		if _, err := r.Read(); err != io.EOF {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	lines := scenarioLines(b)
	for name, f := range map[string]func([]byte) (collect.Event, error){"quick": collect.Unmarshal, "json": collect.UnmarshalAny} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				if _, err := f(lines[n%len(lines)]); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
