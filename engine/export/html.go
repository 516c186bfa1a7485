package export

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"text/template"
)

//go:embed page
var pageFiles embed.FS

// pageScripts are the page's scripts in the order in which they stand in it.
var pageScripts = []string{"tools.js", "time.js", "lanes.js", "changes.js", "tables.js", "main.js"}

// pageTemplate has places for nothing that comes from a cluster but Data, which is JSON
// with every < written as \u003c, so that no text of it can end the element it is in.
var pageTemplate = template.Must(template.New("index.html").ParseFS(pageFiles, "page/index.html"))

// HTML writes one page with everything in it. It loads nothing, and the browser is told
// to run no other script than its own (Content-Security-Policy, by hash); its script
// puts texts of the cluster into the page as text only.
func (d *Document) HTML(w io.Writer) error {
	var script bytes.Buffer
	for _, name := range pageScripts {
		b, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return err
		}
		script.Write(b)
		script.WriteByte('\n')
	}
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return err
	}
	data, err := json.Marshal(d.page()) // which escapes <, > and &
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, map[string]string{
		"Script": script.String(), "ScriptHash": cspHash(script.Bytes()),
		"Style": string(style), "StyleHash": cspHash(style),
		"Data": string(data),
	})
}

func cspHash(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256-" + base64.StdEncoding.EncodeToString(h[:])
}
