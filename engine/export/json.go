package export

import (
	"encoding/json"
	"io"
)

// JSON writes the report as a kconverge.report/v1 document.
func (d *Document) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d.Report)
}
