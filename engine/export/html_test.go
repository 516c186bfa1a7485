package export

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
)

var dataElement = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// TestThePageHoldsTheReportAndNothingThatIsLoaded.
func TestThePageHoldsTheReportAndNothingThatIsLoaded(t *testing.T) {
	d := document(t, lanestest.Converging())
	var b bytes.Buffer
	if err := d.HTML(&b); err != nil {
		t.Fatal(err)
	}
	var p page
	if err := json.Unmarshal(dataElement.FindSubmatch(b.Bytes())[1], &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Services) != 1 || len(p.Services[0].Changes) != len(d.Report.Services[0].Paths) {
		t.Fatalf("%d services", len(p.Services))
	}
	for i, c := range p.Services[0].Changes {
		want := d.Report.Services[0].Paths[i]
		if (c.EndMS == nil) != (want.EndMS == nil) || c.EndMS != nil && *c.EndMS != *want.EndMS || c.ID != want.ID {
			t.Errorf("change %s took %v, in the report %v", c.ID, c.EndMS, want.EndMS)
		}
		if len(c.Bars) < 5 {
			t.Errorf("change %s has %d bars", c.ID, len(c.Bars))
		}
	}
	for _, s := range []string{"http://", "https://", "src=", "@import", "url(http"} {
		rest := strings.ReplaceAll(b.String(), "http://www.w3.org/2000/svg", "") // a name, not an address
		if i := strings.Index(rest, s); i >= 0 {
			t.Errorf("the page has %q: …%s…", s, rest[max(0, i-40):i+60])
		}
	}
}

// TestNoTextEndsTheDataElement: whatever the cluster says, the data stays JSON in one
// element.
func TestNoTextEndsTheDataElement(t *testing.T) {
	const evil = `</script><script>alert(1)</script><!--{{.Script}}`
	var b bytes.Buffer
	if err := document(t, hostile(evil)).HTML(&b); err != nil {
		t.Fatal(err)
	}
	var p page
	if err := json.Unmarshal(dataElement.FindSubmatch(b.Bytes())[1], &p); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.Services[0].Name, evil) {
		t.Errorf("the name became %q", p.Services[0].Name)
	}
	if n := strings.Count(b.String(), "<script"); n != 2 {
		t.Errorf("%d script elements", n)
	}
	if strings.Contains(b.String(), "alert(1)</") {
		t.Error("a text is markup")
	}
}
