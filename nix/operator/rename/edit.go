package rename

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/florete/florete/nix/operator/compile"
)

// files are the files of a repository, by path with slashes. A file whose value is nil was removed.
type files map[string][]byte

// editor makes changes in the files that declare a cluster.
type editor struct {
	repository
	old    string
	new    string
	places []compile.Place
	edits  map[string][]edit
	moves  map[string]string // new names of files
}

// place returns where an attribute or text is written.
func (e *editor) place(of []any) *compile.Position {
	for _, p := range e.places {
		if reflect.DeepEqual(p.Path, of) {
			return p.At
		}
	}
	return nil
}

// names returns the names of attributes that lead to the last attribute of a path.
func names(of []any) (all []string) {
	last := len(of)
	for last > 0 {
		if _, ok := of[last-1].(string); ok {
			break
		}
		last--
	}
	for _, e := range of[:last] {
		if name, ok := e.(string); ok {
			all = append(all, name)
		} else {
			all = append(all, "")
		}
	}
	return all
}

// definition returns the definition at the position of an attribute, and the index in the path of
// the attribute of the definition's first name. The index is negative if the definition has names
// above the topology.
func (e *editor) definition(of []any) (file, src string, b binding, first int, ok bool) {
	at := e.place(of)
	if at == nil {
		return
	}
	text, found := e.read(at.File)
	if !found {
		return
	}
	src = string(text)
	start, found := offset(src, at.Line, at.Column)
	if !found {
		return
	}
	if b, found = bindingAt(src, start); !found {
		return
	}
	want := names(of)
	aligned := func(first int) bool {
		if first+len(b.names) < len(want) {
			return false
		}
		for i, name := range b.names {
			if at := first + i; at >= 0 && at < len(want) && want[at] != name.text {
				return false
			}
		}
		return true
	}
	for first = range want {
		if aligned(first) {
			return at.File, src, b, first, true
		}
	}
	for first = -1; first > -len(b.names); first-- {
		if aligned(first) {
			return at.File, src, b, first, true
		}
	}
	return
}

func (e *editor) edit(file string, with edit) { e.edits[file] = append(e.edits[file], with) }

// make makes as many of the changes as it can find in the files.
func (e *editor) make(changes []change) {
	for _, c := range changes {
		switch c.kind {
		case renames:
			e.rename(c)
		case replaces:
			e.replace(c)
		case adds:
			e.add(c)
		}
	}
}

// rename renames an attribute wherever a definition names it, on its own or before the names of
// attributes below it. A folder has a file for each service, which gets the new name.
func (e *editor) rename(c change) {
	for _, p := range e.places {
		if len(p.Path) < len(c.path) || !reflect.DeepEqual(p.Path[:len(c.path)], c.path) {
			continue
		}
		file, _, b, first, ok := e.definition(p.Path)
		if i := len(c.path) - 1 - first; ok && i >= 0 && i < len(b.names) {
			name := attribute(c.to)
			if b.names[i].kind == 's' {
				name = quote(c.to)
			}
			e.edit(file, edit{b.names[i].start, b.names[i].end, name})
		}
	}
	if !matches(c.path, "services.*") {
		return
	}
	for _, end := range []string{".nix", ".json"} {
		if was, ok := e.inFolder("services", e.old+end); ok && e.place(c.path) == nil {
			e.moves[was] = path.Join(path.Dir(was), e.new+end)
		}
	}
}

// inFolder returns the file of a topology that is a folder, such as services/wiki.nix.
func (e *editor) inFolder(folder, file string) (found string, ok bool) {
	for _, name := range e.names {
		above, inside := strings.CutSuffix("/"+name, path.Join("/", folder, file))
		if inside && (e.dir == "" || above == "/"+e.dir || strings.HasPrefix(above, "/"+e.dir+"/")) {
			if ok {
				return "", false // two of them
			}
			found, ok = name, true
		}
	}
	return found, ok
}

// replace replaces a text in the definition that contains it, or in the file of a folder that is the
// value.
func (e *editor) replace(c change) {
	was := c.was
	file, src, b, _, ok := e.definition(c.path)
	start, end := b.value, b.end
	if !ok {
		if of := names(c.path); len(of) == 2 {
			file, _ = e.inFolder(of[0], of[1]+".nix")
			text, found := e.read(file)
			src, start, end, ok = string(text), 0, len(text), found
		}
	}
	if !ok {
		return
	}
	for _, t := range plainStrings(src, start, end, was) {
		e.edit(file, edit{t.start, t.end, quote(c.to)})
	}
}

// beside are the attributes after which called is written.
var beside = map[string]string{"databases": "on", "git": "on", "needs": "kind", "sso": "mode"}

// add writes an attribute after another one in the same set.
func (e *editor) add(c change) {
	neighbour := append(slices.Clone(c.path[:len(c.path)-1]), beside[c.path[2].(string)])
	file, src, b, first, ok := e.definition(neighbour)
	if !ok || first+len(b.names) != len(neighbour) {
		return
	}
	var text strings.Builder
	for i, name := range b.names[:len(b.names)-1] {
		written := src[name.start:name.end]
		if first+i == 1 && name.text == e.old {
			if written = attribute(e.new); name.kind == 's' {
				written = quote(e.new)
			}
		}
		text.WriteString(written + ".")
	}
	text.WriteString("called = " + quote(c.to) + ";")
	line := strings.LastIndexByte(src[:b.names[0].start], '\n') + 1
	before := src[line:b.names[0].start]
	rest := src[b.end:]
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	trailing := strings.TrimSpace(rest)
	if strings.TrimSpace(before) == "" && (trailing == "" || trailing[0] == '#') {
		at := b.end + len(strings.TrimRight(rest, "\r"))
		newline := "\n"
		if strings.HasSuffix(rest, "\r") {
			newline = "\r\n"
		}
		e.edit(file, edit{at, at, newline + before + text.String()})
		return
	}
	e.edit(file, edit{b.end, b.end, " " + text.String()})
}

// files returns the changed files.
func (e *editor) files() (files, bool) {
	all := files{}
	for file, edits := range e.edits {
		src, _ := e.read(file)
		text, ok := apply(string(src), edits)
		if !ok {
			return nil, false
		}
		all[file] = []byte(text)
	}
	for was, is := range e.moves {
		text, edited := all[was]
		if !edited {
			text, _ = e.read(was)
		}
		all[was], all[is] = nil, text
	}
	return all, true
}
