package collect

// UnmarshalAny is Unmarshal by encoding/json alone.
func UnmarshalAny(line []byte) (Event, error) { return unmarshalAny(line) }

// Quick tells that a line is read without encoding/json.
func Quick(line []byte) bool {
	var e Event
	d := decoder{b: line}
	return d.event(&e)
}
