package pages

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Invocation is a call of a program on a page.
type Invocation struct {
	Place string // page and line
	Words []string
	// Whole reports whether the words are a whole command, and not a part of one in running text.
	Whole bool
}

// Invocations returns all command lines on the page that run a program. It finds them in blocks of
// shell commands and in inline code.
func (p Page) Invocations(program string) (all []Invocation) {
	for _, b := range p.Blocks("sh", "bash", "shell", "console") {
		console := b.Language == "console"
		text := b.Text
		if console {
			text = prompted(text)
		}
		for _, c := range commandsOf(text) {
			if words := called(c.words, program); words != nil {
				all = append(all, Invocation{fmt.Sprintf("%s:%d", p.Path, b.Line+c.line), words, true})
			}
		}
	}
	p.Prose(func(line int, text string) {
		for _, code := range span.FindAllString(text, -1) {
			for _, c := range commandsOf(strings.Trim(code, "`")) {
				if words := called(c.words, program); len(words) > 0 {
					all = append(all, Invocation{fmt.Sprintf("%s:%d", p.Path, line), words, false})
				}
			}
		}
	})
	return all
}

// prompted keeps the lines that begin with a prompt, without that, and empties the others.
func prompted(text string) string {
	lines := strings.Split(text, "\n")
	goesOn := false
	for i, line := range lines {
		rest, found := strings.CutPrefix(line, "$ ")
		if !found {
			rest, found = strings.CutPrefix(line, "# ")
		}
		switch {
		case found:
			lines[i] = rest
		case !goesOn:
			lines[i] = ""
		}
		goesOn = strings.HasSuffix(lines[i], `\`)
	}
	return strings.Join(lines, "\n")
}

// before are words that a command may begin with before the program that it calls.
var before = []string{"sudo", "ssh", "env", "time", "watch", "then", "do", "if", "while", "until", "!", "exec", "nohup", "xargs"}

// called returns the words after the program, where a command calls it.
func called(words []string, program string) []string {
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:]
	}
	for i, w := range words {
		if path.Base(w) == program {
			return append([]string{}, words[i+1:]...)
		}
		if i == 0 && !slices.Contains(before, w) {
			return nil
		}
	}
	return nil
}

type command struct {
	line  int
	words []string
}

// commandsOf splits text of a shell into its commands and their words. Redirections and comments are
// left out, and here-documents are not known.
func commandsOf(text string) (all []command) {
	var words []string
	var word strings.Builder
	started, line, redirect := false, 0, false
	endWord := func() {
		if started && !redirect {
			words = append(words, word.String())
		}
		if started {
			redirect = false
		}
		word.Reset()
		started = false
	}
	end := func() {
		endWord()
		redirect = false
		if len(words) > 0 {
			all = append(all, command{line, words})
		}
		words = nil
	}
	r := []rune(text)
	for i := 0; i < len(r); i++ {
		switch c := r[i]; {
		case c == '\\' && i+1 < len(r):
			i++
			if r[i] != '\n' {
				word.WriteRune(r[i])
				started = true
			}
		case c == '\'' || c == '"':
			started = true
			for i++; i < len(r) && r[i] != c; i++ {
				word.WriteRune(r[i])
			}
		case c == '#' && !started:
			for i+1 < len(r) && r[i+1] != '\n' {
				i++
			}
		case c == '<' && i+1 < len(r) && r[i+1] >= 'a' && r[i+1] <= 'z' && strings.ContainsRune(string(r[i:min(i+30, len(r))]), '>'):
			word.WriteRune(c) // a placeholder such as <name>
			started = true
			for i++; r[i] != '>'; i++ {
				word.WriteRune(r[i])
			}
		case c == '<' || c == '>':
			if w := word.String(); w == "2" || w == "1" {
				word.Reset()
				started = false
			}
			endWord()
			redirect = true
		case c == '\n':
			end()
			line++
		case strings.ContainsRune("|;&(){}", c) && !(c == '{' || c == '}') || c == '`' || c == '$' && i+1 < len(r) && r[i+1] == '(':
			end()
		case c == ' ' || c == '\t':
			endWord()
		default:
			word.WriteRune(c)
			started = true
		}
	}
	end()
	return all
}
