package binarycache

import (
	"strings"
	"testing"
)

const lib = "0mw6qwsrz35cck0wnjgmfnjzwnjbspsy"

const sample = `StorePath: /nix/store/` + lib + `-lib
URL: nar/1b4sb93wp679q4zx9k1ignby1yna3z7c4c2ri3wphylbc2dwsys0.nar.xz
Compression: xz
FileHash: sha256:1b4sb93wp679q4zx9k1ignby1yna3z7c4c2ri3wphylbc2dwsys0
FileSize: 196040
NarHash: sha256:0lxjvvpr59c2mdram7ympy5ay741f180kv3349hvfc3f8nrmbqf6
NarSize: 464152
References: ` + lib + `-lib 7gx4kiv5m0i7d7qkixq2cwzbr10lvxwc-glibc-2.27
Sig: demo-1:sn5s/RrqEI+YG6/PjwdbPjcAC7rcta7sJU4mFOawGvJBLsWkyLtBrT2EuFt/LJjWkTZ+ZWOI9NTtjo/woMdvAg==
`

// FuzzParseInfo checks that an accepted narinfo is written in a form that is accepted again, with the
// same paths.
func FuzzParseInfo(f *testing.F) {
	f.Add(sample)
	f.Add(strings.Replace(sample, "nar/", "nar/"+lib+"/", 1))
	f.Add(strings.Replace(sample, "nar/", "../nar/", 1))
	f.Add(strings.Replace(sample, "NarHash: sha256", "NarHash: sha1", 1))
	f.Fuzz(func(t *testing.T, text string) {
		i, file, err := parseInfo(lib, []byte(text))
		if err != nil {
			return
		}
		if !contentsPattern.MatchString(file) || strings.Contains(file, "/") {
			t.Fatalf("file %q", file)
		}
		_ = verify(i, []string{"demo-1:wFn3xpcSjbH4YZbXUI5JFuBxDg0mGKL8vHmhNBWgdrA="})
		again, same, err := parseInfo(lib, []byte(i.String()))
		if err != nil || same != file || again.Fingerprint() != i.Fingerprint() {
			t.Fatalf("%q becomes %q: %v", text, i, err)
		}
	})
}

func TestParseInfo(t *testing.T) {
	i, file, err := parseInfo(lib, []byte(sample))
	if err != nil || file != "1b4sb93wp679q4zx9k1ignby1yna3z7c4c2ri3wphylbc2dwsys0.nar.xz" || len(i.References) != 2 {
		t.Fatalf("%v, %q, %v", i, file, err)
	}
	for _, c := range [][3]string{
		{lib + "-lib\nURL", "7gx4kiv5m0i7d7qkixq2cwzbr10lvxwc-lib\nURL", "StorePath"},
		{"nar/1b", "nar/../1b", "URL"},
		{"nar/1b", "nar/7gx4kiv5m0i7d7qkixq2cwzbr10lvxwc/1b", "URL"},
		{"URL: nar/1b", "URL: nar/2b", "URL"},
		{"FileSize: 196040\n", "", "FileSize 0"},
		{"NarSize: 464152", "NarSize: 464152000000", "NarSize"},
		{"NarHash: sha256:0lxjvvpr59c2mdram7ympy5ay741f180kv3349hvfc3f8nrmbqf6\n", "", "NarHash: want a SHA-256"},
		{"glibc-2.27", "glibc/2.27", "invalid Reference"},
	} {
		if _, _, err := parseInfo(lib, []byte(strings.Replace(sample, c[0], c[1], 1))); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%q for %q: %v, want %q", c[1], c[0], err, c[2])
		}
	}
}
