package ui

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

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
		for _, key := range replace[name] {
			if !isKey(key) {
				return nil, fmt.Errorf("%q of %s is no key: write one character, or a name like enter, f5, pgup or ctrl+x", key, name)
			}
		}
		k.byAction[a] = replace[name]
	}
	if len(k.byAction[view.Quit]) == 0 {
		return nil, fmt.Errorf("%s needs a key", view.Quit)
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

// keyWords are the names of keys that are no character, with f1 to f20.
var keyWords = []string{"up", "down", "left", "right", "enter", "esc", "tab", "space", "backspace", "delete", "insert", "home", "end", "pgup", "pgdown"}

// isKey tells that a key can be pressed: a character, or the name of another one, with
// modifiers before it.
func isKey(key string) bool {
	for _, mod := range []string{"ctrl+", "alt+", "shift+", "super+"} {
		key = strings.TrimPrefix(key, mod)
	}
	if r := []rune(key); len(r) == 1 {
		return unicode.IsPrint(r[0]) && r[0] != ' '
	}
	n, err := strconv.Atoi(strings.TrimPrefix(key, "f"))
	return slices.Contains(keyWords, key) || strings.HasPrefix(key, "f") && err == nil && n >= 1 && n <= 20
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
