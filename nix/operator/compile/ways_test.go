package compile

import (
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/tests/kit"
)

// nixEval evaluates an expression strictly, in nix/operator/compile.
func nixEval(t *testing.T, expr string, v any) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nix-instantiate", "--eval", "--strict", "--json", "-E", expr)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, v); err != nil {
		t.Fatal(err)
	}
}

// TestReferenceIsCurrent checks that the reference of the topology matches the language.
func TestReferenceIsCurrent(t *testing.T) {
	var want string
	nixEval(t, "import ../../language/reference.nix", &want)
	const path = "../../../docs/reference/topology.md"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what reference.nix writes: go test ./nix/operator/compile -run Reference -update", path)
	}
}

// library returns this repository's library as a flake without inputs.
func library(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"nix", "modules"} {
		if err := kit.CopyLibrary(filepath.Join(dir, part), "../../../"+part); err != nil {
			t.Fatal(err)
		}
	}
	text := `{ outputs = _: { lib = import ./nix; templates.default = { path = ./nix/templates/cluster; description = "-"; }; }; }`
	if err := os.WriteFile(filepath.Join(dir, "flake.nix"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTemplate checks that a cluster made from the template passes its checks unchanged.
func TestTemplate(t *testing.T) {
	lib, dir := library(t), t.TempDir()
	nix := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "nix", append([]string{"--extra-experimental-features", "nix-command flakes",
			"--option", "build-users-group", "", "--option", "substituters", ""}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("nix %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	nix("flake", "init", "-t", "path:"+lib)
	nix("flake", "check", "--no-write-lock-file", "--override-input", "florete", "path:"+lib)

	src := Source{Flake: dir, Args: []string{"--override-input", "florete", "path:" + lib}}
	c, err := Compile(t.Context(), src)
	if err != nil || len(c.Documents) != 2 {
		t.Fatalf("got %d hosts, %v", len(c.Documents), err)
	}
	top, err := ReadTopology(t.Context(), src)
	if err != nil || top.Hosts["forge"].Group != "home" {
		t.Errorf("hosts/home/forge.nix is in group %q, %v", top.Hosts["forge"].Group, err)
	}
}

// writeFiles writes files below dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFolder checks that a folder of files is the same topology as one attribute set.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"cluster.nix":         `{ name = "c"; trustDomain = "c.flor"; users.bob = { }; }`,
		"roles.nix":           `{ node = { }; }`,
		"roles/operator.nix":  `{ services = [ "s" ]; }`,
		"service.nix":         `{ }`,
		"services/s.nix":      `{ host = "b"; port = 1; }`,
		"hosts/a.nix":         `{ address = "192.0.2.1"; }`,
		"hosts/eu/fra/b.nix":  `{ address = "192.0.2.2"; }`,
		"hosts/eu/c.nix":      `{ group = "us"; }`,
		"hosts/_draft/d.nix":  `{ }`,
		"hosts/.hidden.nix":   `{ }`,
		"hosts/eu/README.md":  `not Nix`,
		"hostGroups.nix":      `{ eu.tags = [ "europe" ]; us = { }; }`,
		"providers/cert.nix":  `{ hosts = [ "a" ]; }`,
		"users/ann.nix":       `{ roles = [ "operator" ]; }`,
		"role/eu/lost.nix":    `{ }`,
		"flake.nix":           `throw "not read"`,
		"default.nix":         `throw "not read"`,
		"modules/web.nix":     `throw "not read"`,
		"user/notes.md":       `nothing to read`,
		"services/README.txt": `nothing to read`,
		"services/LICENSE":    `nothing to read`,
		"hosts/eu/d.pub":      `nothing to read`,
		"hosts/eu/d.crt":      `nothing to read`,
		"Makefile":            `nothing to read`,
		"services/t.json":     `{ "$schema": "../service.json", "host": "b", "port": 2, "facts": { "up": true } }`,
		"hosts/eu/d.json":     `{ "address": [ "192.0.2.4" ], "capacity": null }`,
		"teams.json":          `{ "$schema": "x", "t": { "users": [ "ann" ] } }`,
		"hosts/_d.json":       `[`,
		"renovate.json":       `[`,
		"package-lock.json":   `{ }`,
		"release.yaml":        `-`,
		"flake.nix.bak":       `-`,
	})
	var same bool
	nixEval(t, `(import ../../language/folder.nix) `+dir+` == {
		name = "c"; trustDomain = "c.flor"; providers.cert.hosts = [ "a" ];
		roles = { node = { }; operator.services = [ "s" ]; };
		role.lost.group = "eu";
		service = { };
		services.s = { host = "b"; port = 1; };
		services.t = { host = "b"; port = 2; facts.up = true; };
		teams.t.users = [ "ann" ];
		hosts = { d = { group = "eu"; address = [ "192.0.2.4" ]; capacity = null; }; a.address = "192.0.2.1"; b = { address = "192.0.2.2"; group = "eu/fra"; }; c.group = "us"; };
		hostGroups = { eu.tags = [ "europe" ]; "eu/fra" = { }; us = { }; };
		users = { ann.roles = [ "operator" ]; bob = { }; };
	}`, &same)
	if !same {
		var got any
		nixEval(t, `(import ../../language/folder.nix) `+dir, &got)
		t.Errorf("got %v", got)
	}
}

// TestFolderRefuses checks that files that a folder would hide are refused, and that misspelt ones
// are faults among the others.
func TestFolderRefuses(t *testing.T) {
	top := t.TempDir()
	cases := map[string]string{
		"hosts/eu/a.nix":      "FL009 hosts.a: written in several files: hosts/a.nix, hosts/eu/a.nix; keep one of them",
		"users/bob.nix":       "FL009 users.bob: written in several files: cluster.nix, users/bob.nix; keep one of them",
		"users.nix":           "FL009 users: written in several files: cluster.nix, users.nix; keep one of them",
		"services/web/t.nix":  "FL001 services: only hosts are in folders of folders, not web; put its files into services\n",
		"hosts/b/default.nix": "FL001 hosts/b: a file has the name of what is in it, not default.nix; call it hosts/b.nix\n",
		"users/default.nix":   "FL001 users: a file has the name of what is in it, not default.nix; call it users.nix\n",
		"users/bob.json":      "FL009 users.bob: written in several files: cluster.nix, users/bob.json; keep one of them",
		"hosts/a.json":        "FL009 hosts.a: written in several files: hosts/a.json, hosts/a.nix; keep one of them",
		"cluster.json":        "FL009 cluster: written in several files: cluster.json, cluster.nix; keep one of them",
		"user.json":           `FL001 user: mkCluster has no attribute user; did you mean "users"?`,
		"service/web.json":    `FL001 service: mkCluster has no attribute service; did you mean "services"?`,
		"roles.json":          `FL002 roles: want a set of roles, found a list; write { name = { … }; }`,
		"users/default.json":  "FL001 users: a file has the name of what is in it, not default.json; call it users.json\n",
		"users/ann.json.bak":  "FL001 users: a file that is not read: ann.json.bak; write it in Nix or as .json, or call it _ann.json.bak if it is no part of the cluster\n",
		"services/#x.nix#":    "FL001 services: a file that is not read: #x.nix#;",
		"services/X.NIX":      "FL001 services: a file that is not read: X.NIX;",
		"services.yaml":       "FL001 mkCluster: a file that is not read: services.yaml;",
		"host.nix.bak":        "FL001 mkCluster: a file that is not read: host.nix.bak;",
		"services/x.yaml.j2":  "FL001 services: a file that is not read: x.yaml.j2;",
		"services/x.csv":      "FL001 services: a file that is not read: x.csv;",
		"services/x.txt":      "FL001 services: a file that is not read: x.txt;",
		"services/x.jsn":      "FL001 services: a file that is not read: x.jsn;",
		"services/x.bak":      "FL001 services: a file that is not read: x.bak;",
		"services/x.yaml":     "FL001 services: a file that is not read: x.yaml;",
		"hosts/eu/x.nix.bak":  "FL001 hosts/eu: a file that is not read: x.nix.bak;",
		"services/x":          "FL001 services: a file that is not read: x; write it in Nix or as .json, or call it _x if it is no part of the cluster\n",
		"shell.nix":           "FL001 mkCluster: a file that is no part of a cluster: shell.nix; call it _shell.nix, or give the topology a folder of its own: florete.lib.folder ./cluster\n",
		"hosts/b/module.nix":  "FL002 hosts/b: want a set, found a function, as modules of NixOS are, in module.nix; call it _module.nix, or give the topology a folder of its own: florete.lib.folder ./cluster\n",
		"secrets/secrets.nix": "FL002 secrets: want a set, found rules of agenix in secrets.nix; call it _secrets.nix, or give the topology a folder of its own: florete.lib.folder ./cluster\n",
		"services/x.nxi":      "FL001 services: a file that is not read: x.nxi;",
		"services/x.nx":       "FL001 services: a file that is not read: x.nx;",
		"services/x.Json":     "FL001 services: a file that is not read: x.Json;",
		"services.Nix":        "FL001 mkCluster: a file that is not read: services.Nix;",
		"services.jsn":        "FL001 mkCluster: a file that is not read: services.jsn;",
		"hosts/eu/x.nix~":     "FL001 hosts/eu: a file that is not read: x.nix~;",
		"cluster.nix":         "FL002 cluster.nix: want a set, found something else; write { name = …; }",
		"service/web.nix":     `FL001 service: mkCluster has no attribute service; did you mean "services"?`,
		"host/eu/web.nix":     `FL001 host: mkCluster has no attribute host; did you mean "hosts"?`,
		"provider/cert.nix":   `FL001 provider: mkCluster has no attribute provider; did you mean "providers"?`,
		"user.nix":            `FL001 user: mkCluster has no attribute user; did you mean "users"?`,
		"services.nix":        `FL002 services: want a set of services, found a list; write { name = { … }; }`,
	}
	for file := range cases {
		text := `{ }`
		if file == "cluster.nix" || file == "services.nix" || file == "roles.json" {
			text = `[ ]`
		}
		switch file {
		case "hosts/b/module.nix":
			text = `{ config, ... }: { }`
		case "secrets/secrets.nix":
			text = `{ "db.age".publicKeys = [ ]; }`
		}
		dir := filepath.Join(top, url.PathEscape(file))
		writeFiles(t, dir, map[string]string{
			"cluster.nix":       `{ name = "c"; trustDomain = "c.flor"; users.bob = { }; }`,
			"hosts/a.nix":       `{ }`,
			"services/wiki.nix": `{ host = "a"; port = 1; }`,
		})
		writeFiles(t, dir, map[string]string{file: text})
	}
	var reports map[string]string
	nixEval(t, `let
		top = /. + "`+top+`";
		report = dir: let c = (import ../../.).mkCluster ((import ../../language/folder.nix) (top + "/${dir}")); in
			assert !(builtins.tryEval (builtins.deepSeq c.compiled true)).success;
			(import ../../lib/fault.nix).report c.name c.faults;
	in builtins.mapAttrs (dir: _: report dir) (builtins.readDir top)`, &reports)
	for file, want := range cases {
		// What else is wrong is told with it.
		if out := reports[url.PathEscape(file)] + "\n"; !strings.Contains(out, want) || !strings.Contains(out, "FL017") {
			t.Errorf("%s: got %s", file, out)
		}
	}
}

// TestFolderFollowsLinks checks that a symbolic link to a folder of the flake is read like the
// folder, and that a dangling one is refused.
func TestFolderFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"cluster.nix":           `{ name = "c"; trustDomain = "c.flor"; }`,
		"_services/wiki.nix":    `{ host = "a"; port = 1; }`,
		"_shared/eu/fra/a.nix":  `{ }`,
		"_shared/eu/README":     `nothing to read`,
		"hosts/b.nix":           `{ }`,
		"elsewhere/teams/t.nix": `{ }`,
	})
	for name, to := range map[string]string{
		"services": "_services", "hosts/us": "../_shared/eu", "hosts/c.nix": "b.nix", "hosts/gone": "../nowhere", "teams": "elsewhere/teams",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var got struct {
		Topology any
		Faults   []Fault
	}
	nixEval(t, `let all = import ../../language/folder.nix (/. + "`+dir+`"); in { topology = removeAttrs all [ "_faults" ]; faults = all._faults; }`, &got)
	want := `{"hostGroups":{"us":{},"us/fra":{}},"hosts":{"a":{"group":"us/fra"},"b":{},"c":{}},"name":"c","services":{"wiki":{"host":"a","port":1}},"teams":{"t":{}},"trustDomain":"c.flor"}`
	if text, err := json.Marshal(got.Topology); err != nil || string(text) != want {
		t.Errorf("got %s, %v\nwant %s", text, err, want)
	}
	if len(got.Faults) != 1 || got.Faults[0].Place != "hosts" || got.Faults[0].Value != "gone" {
		t.Errorf("got faults %v, want one of hosts/gone", got.Faults)
	}
}

// TestFilesThatAreNoJSON checks that an invalid JSON file is named with the line, which Nix does
// not do.
func TestFilesThatAreNoJSON(t *testing.T) {
	for file, c := range map[string]struct{ text, want string }{
		"services/b.json": {"{\n \"host\": \"b\",\n}", "services/b.json:3: invalid character '}' looking for beginning of object key string"},
		"services/c.json": {"{\n<<<<<<< HEAD\n \"port\": 1\n=======\n", "services/c.json:2: the conflict of a merge"},
		"services/d.json": {"{ \"upstream\": \"m\xfcnchen:80\" }", "services/d.json:1: a byte that is not UTF-8, 0xfc"},
		"flake.lock":      {"<<<<<<< HEAD\n{ }\n", "flake.lock:1: the conflict of a merge"},
	} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{
				"flake.nix":              `{ outputs = { self }: { florete.c = (import ./lib).mkCluster ((import ./lib).folder ./. // { inherit self; }); }; }`,
				"cluster.nix":            `{ name = "c"; trustDomain = "c.flor"; }`,
				"services/a.json":        `{ "host": "b" }`,
				"services/_draft/x.json": `{`,
				".vscode/settings.json":  `{`,
				file:                     c.text,
			})
			if err := kit.CopyLibrary(filepath.Join(dir, "lib"), "../.."); err != nil {
				t.Fatal(err)
			}
			_, err := Compile(t.Context(), Source{Flake: dir})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// nixpkgsLib is the lib folder of nixpkgs, where a developer has it.
func nixpkgsLib(t *testing.T) string {
	lib := os.Getenv("NIXPKGS_LIB")
	if lib == "" {
		t.Skip("NOT RUN: set NIXPKGS_LIB to the lib folder of nixpkgs to test the module system")
	}
	return lib
}

// TestModules checks that the same topology as typed options gives the same documents, and that
// unknown options are refused.
func TestModules(t *testing.T) {
	lib := nixpkgsLib(t)
	prelude := `let
		lib = import ` + lib + `;
		inherit (import ../../default.nix) mkCluster;
		topology = removeAttrs (import ` + golden + `/base.nix { key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ../../lib/names.nix).sri name); }) [ "self" ];
		evaluate = definitions: (lib.evalModules { modules = [ ../../../modules/topology.nix ] ++ definitions; }).config.florete.topologies;
	in `
	var same bool
	// Every golden case that compiles.
	sound, err := filepath.Glob(golden + "/*/expected")
	if err != nil || len(sound) < 40 {
		t.Fatalf("%d golden cases compile, %v", len(sound), err)
	}
	var cases strings.Builder
	for _, dir := range sound {
		cases.WriteString(" " + quote(filepath.Base(filepath.Dir(dir))))
	}
	var differing []string
	nixEval(t, prelude+`let
			key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ../../lib/names.nix).sri name);
			plain = case: import (./. + "/`+golden+`/${case}/topology.nix") { base = topology; inherit key; inherit (import `+golden+`/merge.nix) merge; };
			differs = case: let written = removeAttrs (plain case) [ "self" ]; in
				(mkCluster (evaluate [ { florete.clusters.golden = written; } ]).golden).compiled != (mkCluster written).compiled;
		in builtins.filter differs [`+cases.String()+` ]`, &differing)
	if len(differing) > 0 {
		t.Errorf("options do not compile to the documents of the same attribute set in the cases %v", differing)
	}
	// Options have the language's own defaults, or null, for what is not written.
	nixEval(t, prelude+`let
			inner = about: if about ? of then inner about.of else about;
			walk = place: about: options: builtins.concatMap (n:
				let
					f = about.fields.${n};
					o = options.${n};
					at = "${place}.${n}";
				in
				(if !f ? default || o.default == null || o.default == f.default then [ ] else [ at ])
				++ (if (inner f.about) ? fields then walk at (inner f.about) (o.type.getSubOptions [ ]) else [ ])
			) (builtins.filter (n: n != "self") (builtins.attrNames about.fields));
		in walk "" (import ../../language).cluster.about
			((lib.evalModules { modules = [ ../../../modules/topology.nix ]; }).options.florete.clusters.type.getSubOptions [ ])`, &differing)
	if len(differing) > 0 {
		t.Errorf("options have other defaults than the language: %v", differing)
	}
	// Definitions in several modules are merged.
	nixEval(t, prelude+`(mkCluster (evaluate [
		{ florete.clusters.golden = topology; }
		{ florete.clusters.golden.users.bob.roles = [ "reader" ]; florete.clusters.golden.hosts.beta.users = [ "bob" ]; }
	]).golden).topology.hosts.beta.users == [ "ann" "bob" ]`, &same)
	if !same {
		t.Error("a second module adds nothing")
	}
	for definition, refusal := range map[string]string{
		`{ hosts.beta.prot = 1; }`:                      "prot",
		`{ services.wiki.port = lib.mkForce "8080"; }`:  "a port from 1 to 65535",
		`{ hosts.alpha.kind = lib.mkForce "desktop"; }`: "device",
		`{ teams.ops.users = "alice"; }`:                "teams.ops.users",
	} {
		out, err := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "-E",
			prelude+`(mkCluster (evaluate [ { florete.clusters.golden = topology; } { florete.clusters.golden = `+definition+`; } ]).golden).faults`).CombinedOutput()
		if err == nil || !strings.Contains(string(out), refusal) {
			t.Errorf("%s: got %s", definition, out)
		}
	}
	// Every option has what an editor completes from: a description, and an example where neither
	// choices nor a default are one. There are as many as the schema of the input has attributes.
	var options []struct {
		Name, Description, Type string
		Example, Default        any
	}
	nixEval(t, prelude+`map (o: { inherit (o) name description type; example = o.example or null; default = o.default or null; })
		(builtins.filter (o: o.visible or true && !o.internal or false)
			(lib.optionAttrSetToDocList (lib.evalModules { modules = [ ../../../modules/topology.nix ]; }).options.florete))`, &options)
	_, input := inputSchema(t)
	attributes := map[string]bool{}
	namesOf("florete.clusters.<name>", input.Schema, attributes)
	for _, o := range options {
		if o.Description == "" || o.Type == "" {
			t.Errorf("%s: description %q, type %q", o.Name, o.Description, o.Type)
		}
		want, ok := attributes[o.Name]
		if ok && want && o.Example == nil {
			t.Errorf("%s: no example", o.Name)
		}
		delete(attributes, o.Name)
	}
	if len(attributes) > 0 || len(options) < 280 {
		t.Errorf("%d options, none for %v", len(options), attributes)
	}
}

// namesOf collects the attributes of a schema under their option names, and whether they have
// examples.
func namesOf(place string, s schema, all map[string]bool) {
	properties, _ := s["properties"].(schema)
	for name, p := range properties {
		p := p.(schema)
		all[place+"."+name] = p["examples"] != nil
		namesOf(place+"."+name, p, all)
	}
	if union, ok := s["anyOf"].([]any); ok {
		for _, e := range union {
			namesOf(place, e.(schema), all)
		}
	}
	if of, ok := s["additionalProperties"].(schema); ok {
		namesOf(place+".<name>", of, all)
	}
	if of, ok := s["items"].(schema); ok {
		namesOf(place+".*", of, all)
	}
}

// TestFlakeModule checks the outputs and checks of the module for flake-parts.
func TestFlakeModule(t *testing.T) {
	lib := nixpkgsLib(t)
	var names []string
	nixEval(t, `let
		lib = import `+lib+`;
		inherit (lib) mkOption types;
		parts = lib.evalModules {
			specialArgs.self = { lastModified = 7; };
			modules = [
				../../../modules/flake.nix
				{ options.flake = mkOption { type = types.lazyAttrsOf types.raw; }; options.perSystem = mkOption { type = types.raw; }; }
				{ florete.clusters.golden = import `+golden+`/base.nix { key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + builtins.substring 8 42 ((import ../../lib/names.nix).sri name); }; }
			];
		};
	in builtins.attrNames (parts.config.perSystem { system = "x86_64-linux"; }).checks
		++ builtins.attrNames parts.config.flake.florete
		++ builtins.attrNames parts.config.flake.florete.golden.documents`, &names)
	if got := strings.Join(names, " "); got != "florete-golden golden alpha beta" {
		t.Errorf("got %s", got)
	}
}
