// Package docs_test checks what pages below docs have an operator type.
package docs_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	repo      = "../.."
	scenarios = repo + "/tests/scenarios"
)

// untested are the pages with commands in blocks of sh that no scenario carries out, with the
// reason. Their flags are checked like those of all pages.
var untested = map[string]string{
	"docs/how-to/run-providers-on-three-hosts.md": "the test of members in providers/store/etcd types its lines for etcdctl",
}

var (
	link    = regexp.MustCompile(`\]\(((?:\.\./)+tests/scenarios/\w+\.py)\)`)
	comment = regexp.MustCompile(`\s{2,}#.*`)
	helper  = regexp.MustCompile(`(?s)def (publish|sign_issuer)\(.*?\n\n\n`)
	typed   = regexp.MustCompile(`(?m)^# operator: (.+)$`)
)

// TestScenarios compares each block of sh on a page with the first scenario that its section
// links, or else with the first one of the last section that links any: the scenario must carry out
// these commands, in that order. Blocks in other languages, such as console, are not compared.
func TestScenarios(t *testing.T) {
	for _, path := range pages(t) {
		page, _ := filepath.Rel(repo, path)
		text := read(t, path)
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			read(t, filepath.Dir(path), l[1])
		}
		reason, listed := untested[page]
		if listed && reason == "" {
			t.Errorf("%s: listed as untested, want a reason", page)
		}
		all, last := sections(text), ""
		for _, s := range all {
			last = cmp.Or(s.scenario, last)
		}
		seen := map[string]int{} // by scenario, up to where its text was compared
		for _, s := range all {
			if len(s.blocks) == 0 || listed {
				continue
			}
			script := cmp.Or(s.scenario, last)
			if script == "" {
				t.Errorf(`%s: %q has commands and no scenario, want a line such as "Tested by [host_added](../../tests/scenarios/host_added.py).", blocks of console, or the page among untested with the reason`, page, s.heading)
				continue
			}
			does := read(t, filepath.Dir(path), script)
			if m := typed.FindAllStringSubmatch(does, -1); slices.ContainsFunc(m, func(m []string) bool { return slices.Contains(strings.Fields(m[1]), page) }) && strings.Contains(does, "blocks") {
				continue // It types the page itself.
			}
			seen[script] = compare(t, page, s, script, does, seen[script])
		}
	}
}

// compare looks for the commands of a section in the text of a scenario from an offset on, and
// returns where the last one is.
func compare(t *testing.T, page string, s section, script, does string, from int) int {
	t.Helper()
	common, driver := read(t, scenarios, "common.py"), read(t, repo, "tests/hosts/driver/cluster.py")
	for _, h := range helper.FindAllStringSubmatch(common, -1) {
		does = strings.ReplaceAll(does, h[1]+"(", h[0]+h[1]+"(")
	}
	for _, b := range s.blocks {
		for _, c := range commands(b) {
			if does, ok := prepared(c); ok {
				if !strings.Contains(driver, does) {
					t.Errorf("%s: %s: %q is not what the driver of the scenarios does", page, s.heading, c)
				}
				continue
			}
			at := find(c, does, from)
			if at < 0 {
				t.Errorf("%s: %s: %q is not in %s, after the commands before it", page, s.heading, c, filepath.Base(script))
				continue
			}
			from = at
		}
	}
	return from
}

// TestOperatorPages checks that the pages that scenarios name exist.
func TestOperatorPages(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(scenarios, "*.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		for _, m := range typed.FindAllStringSubmatch(read(t, script), -1) {
			for page := range strings.FieldsSeq(m[1]) {
				if _, err := os.Stat(filepath.Join(repo, page)); err != nil {
					t.Errorf("%s: %v", filepath.Base(script), err)
				}
			}
		}
	}
}

func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"docs/how-to/*.md", "docs/tutorial/*.md"} {
		found, err := filepath.Glob(filepath.Join(repo, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// section is the text of a page from one heading to the next.
type section struct {
	heading  string
	scenario string // the first one that it links
	blocks   []string
}

func sections(page string) []section {
	all, block, fence := []section{{}}, []string(nil), ""
	for line := range strings.Lines(page) {
		s := &all[len(all)-1]
		in, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence == "" && isFence:
			fence, block = "```"+in, nil
		case fence != "" && isFence && in == "":
			if fence == "```sh" {
				s.blocks = append(s.blocks, strings.Join(block, ""))
			}
			fence = ""
		case fence != "":
			block = append(block, line)
		case strings.HasPrefix(line, "#"):
			all = append(all, section{heading: strings.TrimSpace(strings.TrimLeft(line, "#"))})
		default:
			if l := link.FindStringSubmatch(line); l != nil && s.scenario == "" {
				s.scenario = l[1]
			}
		}
	}
	return all
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// commands returns the commands of a block of shell, without the words that only say where to run
// them.
func commands(text string) (all []string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = comment.ReplaceAllString(strings.TrimSpace(line), "")
		line = strings.NewReplacer("; do ", " | ", " --via ssh", " | flor-provider import", "; done", "", "cd ~/demo-ca/next; ", "").Replace(line)
		for c := range strings.SplitSeq(line, " | ") {
			if c != "" && !strings.HasPrefix(c, "for ") {
				all = append(all, c)
			}
		}
	}
	return all
}

// prepared returns what the driver of the scenarios does for a command before there are hosts.
func prepared(command string) (string, bool) {
	for begin, does := range map[string]string{
		"florctl ca init":                     `self._florctl("ca", "init", "--trust-domain", DOMAIN, "--out", root)`,
		"(umask 077; nix key generate-secret": `run("nix", "key", "generate-secret", "--key-name", "demo-1")`,
		"florctl publish":                     `self._florctl("publish", self._ref(), "--cluster", revision, "--key", self.operator / "signing.key", "--out", published, "--replace-roots")`,
	} {
		if strings.HasPrefix(command, begin) {
			return does, true
		}
	}
	return "", false
}

var (
	remote = regexp.MustCompile(`^ssh root@(\S+) (.*)`)
	target = regexp.MustCompile(`--flake \.#(\S+)`)
)

// find returns the offset, from on, at which a scenario carries out a command, or -1.
func find(command, does string, from int) int {
	if m := rollback.FindStringSubmatch(command); m != nil {
		return rolledBack(m[1], does, from)
	}
	found := pattern(command).FindStringIndex(does[from:])
	if found == nil {
		return -1
	}
	return from + found[0]
}

var (
	rollback   = regexp.MustCompile(`^ssh root@(\S+) nixos-rebuild switch --rollback$`)
	deployment = regexp.MustCompile(`(?:bring_up|deploy)\("([\w-]+)"(?:, \[([^\]]*)\])?`)
)

// rolledBack returns the offset, from on, at which a scenario deploys to a host, among those that it
// names, the revision that the host had before its last one, or -1. A deployment that names no hosts
// is one to all.
func rolledBack(host, does string, from int) int {
	var had []string // revisions of the host
	for _, m := range deployment.FindAllStringSubmatchIndex(does, -1) {
		revision, named := does[m[2]:m[3]], m[4] >= 0
		if named && !slices.Contains(strings.Split(does[m[4]:m[5]], ", "), host) {
			continue
		}
		if n := len(had); named && m[0] >= from && n > 1 && revision == had[n-2] && revision != had[n-1] {
			return m[0]
		}
		had = append(had, revision)
	}
	return -1
}

// TestRolledBack checks that only a deployment of the former revision counts as a rollback.
func TestRolledBack(t *testing.T) {
	for scenario, want := range map[string]bool{
		`bring_up("a"); deploy("b", hosts); deploy("a", [ursula, elm])`:                        true,
		`bring_up("a"); deploy("b", [elm, ursula]); deploy("c", [elm]); deploy("a", [ursula])`: true,
		`bring_up("a"); deploy("b", hosts); deploy("c", [ursula])`:                             false,
		`bring_up("a"); deploy("b", hosts); deploy("b", [ursula])`:                             false,
		`bring_up("a"); deploy("b", hosts); deploy("a", [elm])`:                                false,
		`bring_up("a"); deploy("b", hosts); deploy("a", hosts)`:                                false,
		`deploy("a", [ursula])`: false,
	} {
		if got := find("ssh root@ursula nixos-rebuild switch --rollback", scenario, 0) >= 0; got != want {
			t.Errorf("%s: %v, want %v", scenario, got, want)
		}
	}
}

// pattern is the form of a command in a scenario: deployments are calls of deploy, which for
// the provider host publish too.
func pattern(command string) *regexp.Regexp {
	host := ""
	if m := remote.FindStringSubmatch(command); m != nil {
		host, command = m[1], m[2]
	}
	if m := target.FindStringSubmatch(command); m != nil {
		host = m[1]
	}
	deploys := func(host string) string { return `deploy\("[\w-]+"(, \[[^\]]*\b` + host + `\b[^\]]*\])?\)` }
	switch {
	case strings.HasPrefix(command, "nixos-rebuild switch --flake "):
		return regexp.MustCompile(deploys(strings.Replace(host, "$host", `\w+`, 1)))
	case command == "flor-provider import":
		return regexp.MustCompile(`flor-provider import <|` + deploys("drhorrible"))
	}
	return regexp.MustCompile(regexp.QuoteMeta(command))
}
