package compile

import (
	"encoding/json"
	"maps"
	"testing"
)

// TestInputs checks that each input is named by its path and resolves as in flake.lock, through
// inputs that follow others.
func TestInputs(t *testing.T) {
	var l lockFile
	err := json.Unmarshal([]byte(`{
		"root": "root",
		"nodes": {
			"root": {"inputs": {"florete": "florete", "nixpkgs": "nixpkgs_2", "self": []}},
			"florete": {
				"inputs": {"nixpkgs": ["nixpkgs"], "own": "nixpkgs", "loop": ["florete", "loop"], "gone": "nowhere"},
				"locked": {"type": "git", "url": "file:///repo", "rev": "41e19c6", "narHash": "sha256-a", "lastModified": 1, "revCount": 2, "submodules": true}
			},
			"nixpkgs": {"locked": {"type": "path", "path": "/n", "narHash": "sha256-c", "lastModified": 5}},
			"nixpkgs_2": {"locked": {"type": "github", "owner": "NixOS", "repo": "nixpkgs", "rev": "8eeec93", "narHash": "sha256-b"}}
		}
	}`), &l)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"florete":         "git:file:///repo 41e19c6 sha256-a submodules=true",
		"florete/gone":    "an input that flake.lock does not have",
		"florete/loop":    "an input that flake.lock does not have",
		"florete/nixpkgs": "github:NixOS/nixpkgs 8eeec93 sha256-b",
		"florete/own":     "path:/n sha256-c",
		"nixpkgs":         "github:NixOS/nixpkgs 8eeec93 sha256-b",
		"self":            "the flake itself",
	}
	if got := l.inputs(); !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
