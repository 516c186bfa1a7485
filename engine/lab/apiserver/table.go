package apiserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
)

// column is one column of `kubectl get`; now is when the table is made.
// Names, order and cell texts follow pkg/printers/internalversion/printers.go.
type column[T object] struct {
	name string
	wide bool
	cell func(obj T, now time.Time) any
}

func col[T object](name string, cell func(T) any) column[T] {
	return column[T]{name: name, cell: func(o T, _ time.Time) any { return cell(o) }}
}

func wide[T object](name string, cell func(T) any) column[T] {
	c := col(name, cell)
	c.wide = true
	return c
}

func nameColumn[T object]() column[T] {
	return col("Name", func(o T) any { return o.GetName() })
}

func ageColumn[T object]() column[T] {
	return column[T]{name: "Age", cell: func(o T, now time.Time) any { return since(o.GetCreationTimestamp().Time, now) }}
}

// since writes an age as kubectl does.
func since(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

// orNone writes what kubectl shows for an empty cell.
func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// firstOf joins the first three of count items and says how many more there are.
func firstOf(items []string, empty string) string {
	const limit = 3
	switch n := len(items); {
	case n == 0:
		return empty
	case n > limit:
		return fmt.Sprintf("%s + %d more...", strings.Join(items[:limit], ","), n-limit)
	default:
		return strings.Join(items, ",")
	}
}

// table turns objects into the table that kubectl asks for.
type table[T object] struct {
	columns []column[T]
	clock   clock.PassiveClock
}

// ConvertToTable implements rest.TableConvertor.
func (t table[T]) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		for _, c := range t.columns {
			d := metav1.TableColumnDefinition{Name: c.name, Type: "string", Description: c.name}
			if c.name == "Name" {
				d.Format = "name"
			}
			if c.wide {
				d.Priority = 1
			}
			out.ColumnDefinitions = append(out.ColumnDefinitions, d)
		}
	}
	now := t.clock.Now()
	row := func(obj runtime.Object) error {
		o, ok := obj.(T)
		if !ok {
			return fmt.Errorf("no table row for a %T", obj)
		}
		r := metav1.TableRow{Object: runtime.RawExtension{Object: obj}}
		for _, c := range t.columns {
			r.Cells = append(r.Cells, c.cell(o, now))
		}
		out.Rows = append(out.Rows, r)
		return nil
	}
	if meta.IsListType(obj) {
		if l, err := meta.ListAccessor(obj); err == nil {
			out.ResourceVersion, out.Continue, out.RemainingItemCount = l.GetResourceVersion(), l.GetContinue(), l.GetRemainingItemCount()
		}
		return out, meta.EachListItem(obj, row)
	}
	if m, err := meta.CommonAccessor(obj); err == nil {
		out.ResourceVersion = m.GetResourceVersion()
	}
	return out, row(obj)
}
