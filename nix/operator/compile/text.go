package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// badText returns an error that names the JSON file, and the line in it, that Nix cannot read. Nix
// itself reports neither. badText searches the files below a folder, and returns nil if it finds no
// bad file or if there is no such folder.
func badText(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if path != dir && strings.ContainsRune("._", rune(d.Name()[0])) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || filepath.Ext(path) != ".json" && d.Name() != "flake.lock" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		place, _ := filepath.Rel(dir, path)
		if at := invalidUTF8(b); at >= 0 {
			return fmt.Errorf("%s:%d: a byte that is not UTF-8, %#x: save the file as UTF-8", place, line(b, at), b[at])
		}
		var syntax *json.SyntaxError
		if !errors.As(json.Unmarshal(b, new(any)), &syntax) {
			return nil
		}
		if at := bytes.Index(b, []byte("<<<<<<< ")); at >= 0 && (at == 0 || b[at-1] == '\n') {
			return fmt.Errorf("%s:%d: the conflict of a merge: resolve it, a flake.lock by git checkout --theirs flake.lock and nix flake lock", place, line(b, at))
		}
		return fmt.Errorf("%s:%d: %w", place, line(b, int(syntax.Offset)-1), syntax)
	})
}

// line returns the line number of an offset in a text, counted from 1.
func line(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), len(text))], []byte("\n"))
}

// invalidUTF8 returns the offset of the first byte that is not valid UTF-8, or -1.
func invalidUTF8(b []byte) int {
	for at := 0; at < len(b); {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// twice returns the duplicate names in objects of a JSON text, and the offset after each duplicate.
// A duplicate is a fault because Nix uses the last value, while a person reads the first. If the
// text is not JSON, twice returns no names.
func twice(text []byte) (names []string, offsets []int) {
	d := json.NewDecoder(bytes.NewReader(text))
	var open []map[string]bool // the objects around, nil for a list
	isName := false
	for {
		token, err := d.Token()
		if err != nil {
			return names, offsets
		}
		within := len(open) > 0 && open[len(open)-1] != nil
		switch token {
		case json.Delim('{'):
			open, isName = append(open, map[string]bool{}), true
			continue
		case json.Delim('['):
			open = append(open, nil)
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			isName = true
			continue
		}
		if name, ok := token.(string); ok && within && isName {
			seen := open[len(open)-1]
			if seen[name] {
				names, offsets = append(names, name), append(offsets, int(d.InputOffset()))
			}
			seen[name], isName = true, false
			continue
		}
		isName = true
	}
}
