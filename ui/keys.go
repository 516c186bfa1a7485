package ui

import (
	"fmt"
	"sort"
	"strings"

	"github.com/kconverge/kconverge/ui/view"
)

// keyMap binds keys to actions.
type keyMap struct {
	byKey    map[string]view.Action
	byAction map[view.Action][]string
}

// newKeyMap makes the key map: the defaults, with those of the named actions
// replaced. A key that is bound twice is an error, as is an unknown name.
func newKeyMap(replace map[string][]string) (*keyMap, error) {
	k := &keyMap{byKey: map[string]view.Action{}, byAction: map[view.Action][]string{}}
	for _, i := range view.Actions {
		k.byAction[i.Action] = i.Keys
	}
	names := make([]string, 0, len(replace))
	for name := range replace {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		a := view.Action(name)
		if _, ok := view.InfoOf(a); !ok {
			return nil, fmt.Errorf("no action is called %q: the palette (:) lists their names", name)
		}
		k.byAction[a] = replace[name]
	}
	for _, i := range view.Actions {
		for _, key := range k.byAction[i.Action] {
			if other, ok := k.byKey[key]; ok {
				return nil, fmt.Errorf("key %q is bound to both %s and %s", key, other, i.Action)
			}
			k.byKey[key] = i.Action
		}
	}
	return k, nil
}

// CheckKeys tells what is wrong with keys for actions, by the actions' names: a name
// that is none, or a key that is bound twice.
func CheckKeys(replace map[string][]string) error {
	_, err := newKeyMap(replace)
	return err
}

// first is the key that texts name for an action.
func (k *keyMap) first(a view.Action) string {
	if keys := k.byAction[a]; len(keys) > 0 {
		return keyName(keys[0])
	}
	return ""
}

// all are the keys of an action, for help.
func (k *keyMap) all(a view.Action) string {
	var out []string
	for _, key := range k.byAction[a] {
		out = append(out, keyName(key))
	}
	return strings.Join(out, " ")
}

var keyNames = map[string]string{"left": "←", "right": "→", "up": "↑", "down": "↓", "enter": "⏎"}

func keyName(key string) string {
	if n, ok := keyNames[key]; ok {
		return n
	}
	return key
}
