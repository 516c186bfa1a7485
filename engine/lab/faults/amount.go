package faults

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// amount is how much of a fault there is. Which of the fields count follows from the
// fault's definition.
type amount struct {
	d     time.Duration
	n     int
	code  int
	share float64 // of the occasions, above 0 to 1
}

// off are the amounts that clear a fault.
var off = []string{"off", "0", "0s", "0%", "none"}

const maxDelay = 10 * time.Minute

// anyDuration is an amount of time.
func anyDuration(s string) (amount, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > maxDelay {
		return amount{}, fmt.Errorf("%q is no duration from 1ms to %s: write 500ms or 2s, or off to clear it", s, maxDelay)
	}
	return amount{d: d, share: 1}, nil
}

// eitherWay is an amount of time that may be negative.
func eitherWay(s string) (amount, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d == 0 || d.Abs() > maxDelay {
		return amount{}, fmt.Errorf("%q is no duration up to %s: write 3s, or -3s for the other way, or off to clear it", s, maxDelay)
	}
	return amount{d: d, share: 1}, nil
}

// onOnly is for what is there or not.
func onOnly(s string) (amount, error) {
	if s != "on" {
		return amount{}, fmt.Errorf("%q is neither on nor off", s)
	}
	return amount{share: 1}, nil
}

// shareOf is on, or a part of the occasions as a percentage.
func shareOf(s string) (amount, error) {
	if s == "on" {
		return amount{share: 1}, nil
	}
	p, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !strings.HasSuffix(s, "%") || p <= 0 || p > 100 {
		return amount{}, fmt.Errorf("%q is no share: write on for every time, or a percentage such as 30%%, or off to clear it", s)
	}
	return amount{share: p / 100}, nil
}

// codes are the answers that a server in trouble gives, and that clients try again; after
// 410 to a watch they list anew.
var codes = map[int]string{410: "the resource version is too old", 429: "too many requests", 500: "internal error", 502: "bad gateway", 503: "unavailable", 504: "timeout"}

// codeAndShare is a status code, with or without ":30%".
func codeAndShare(s string) (amount, error) {
	text, part, partly := strings.Cut(s, ":")
	code, err := strconv.Atoi(text)
	if err != nil || codes[code] == "" {
		return amount{}, fmt.Errorf("%q is no status code of a server in trouble: write 410, 429, 500, 502, 503 or 504, with a share as in 503:30%%, or off to clear it", text)
	}
	a := amount{share: 1}
	if partly {
		if a, err = shareOf(part); err != nil {
			return a, err
		}
	}
	a.code = code
	return a, nil
}

// countTo is a number from 1 to most.
func countTo(most int) func(string) (amount, error) {
	return func(s string) (amount, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > most {
			return amount{}, fmt.Errorf("%q is no number from 1 to %d: write one, or off for the usual", s, most)
		}
		return amount{n: n, share: 1}, nil
	}
}

// onOrEvery is on, or a time after which it happens again and again.
func onOrEvery(s string) (amount, error) {
	if s == "on" {
		return amount{share: 1}, nil
	}
	return anyDuration(s)
}

// shareOrEvery is a share, or a time by turns.
func shareOrEvery(s string) (amount, error) {
	if a, err := anyDuration(s); err == nil {
		return a, nil
	}
	a, err := shareOf(s)
	if err != nil {
		err = fmt.Errorf("%q is neither on nor a percentage such as 30%% nor a duration such as 10s", s)
	}
	return a, err
}
