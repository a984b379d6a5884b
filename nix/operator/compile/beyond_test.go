package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBeyond checks that a file outside of the flake's tree is named, which Nix does not do.
func TestBeyond(t *testing.T) {
	for name, c := range map[string]struct {
		file, link string
		want       string
	}{
		"a link":          {link: "/etc/passwd", want: "wiki.nix: access to "},
		"a path above":    {file: "import ../../x", want: "wiki.nix: access to "},
		"an absolute one": {file: "{ host = builtins.readFile /etc/hostname; }", want: "wiki.nix: access to "},
		"a fetch":         {file: `{ host = builtins.readFile (builtins.fetchurl "http://127.0.0.1:9/x"); }`, want: "wiki.nix: in pure evaluation mode, 'fetchurl' requires"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("flake.nix", `{ outputs = _: { florete = (import ./wiki.nix).host; }; }`)
			write("other.nix", "# a path such as ./wiki.nix\n{ a = ./wiki.nix; }")
			if c.link != "" {
				if err := os.Symlink(c.link, filepath.Join(dir, "wiki.nix")); err != nil {
					t.Fatal(err)
				}
			} else {
				write("wiki.nix", c.file)
			}
			var v any
			err := eval(t.Context(), Source{Flake: dir}, "x: x", &v)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || !strings.Contains(err.Error(), "or an input of the flake") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
