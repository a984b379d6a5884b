package modules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const scenarios = "../tests/scenarios"

var (
	link    = regexp.MustCompile(`\]\((\.\./tests/scenarios/\w+\.py)\)`)
	block   = regexp.MustCompile("(?s)```sh\n(.*?)```")
	comment = regexp.MustCompile(`\s{2,}#.*`)
	helper  = regexp.MustCompile(`(?s)def (publish|sign_issuer)\(.*?\n\n\n`)
)

// TestPlaybook: what the playbook has an operator type is what its scenarios carry
// out, in that order; so is how a host moves away from pushed files.
func TestPlaybook(t *testing.T) {
	playbook := section(t, "README.md", "Playbook")
	common, driver := read(t, scenarios, "common.py"), read(t, "../tests/hosts/driver/cluster.py")
	for _, l := range link.FindAllStringSubmatch(playbook, -1) {
		read(t, l[1])
	}
	steps := strings.Split(playbook, "\n### ")[1:]
	for _, step := range append(steps, section(t, "../activation/README.md", "Away from pushed files")) {
		title, _, _ := strings.Cut(strings.TrimSpace(step), "\n")
		l := link.FindStringSubmatch(step)
		if l == nil {
			if block.MatchString(step) {
				t.Errorf("%s: names no scenario", title)
			}
			continue
		}
		script := read(t, l[1])
		for _, h := range helper.FindAllStringSubmatch(common, -1) {
			script = strings.ReplaceAll(script, h[1]+"(", h[0]+h[1]+"(")
		}
		at := 0
		for _, b := range block.FindAllStringSubmatch(step, -1) {
			for _, c := range commands(b[1]) {
				if made, ok := prepared(c); ok {
					if !strings.Contains(driver, made) {
						t.Errorf("%s: %q: not what the driver of the scenarios does", title, c)
					}
					continue
				}
				found := pattern(c).FindStringIndex(script[at:])
				if found == nil {
					t.Errorf("%s: %q: not in %s, after what comes before it", title, c, l[1])
					continue
				}
				at += found[0]
			}
		}
	}
}

// section is what a page says below one of its headings.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", page, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// commands are those of a block of shell, without what only says where they run.
func commands(text string) (all []string) {
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		line = strings.NewReplacer("; do ", " | ", " --via ssh", " | flor-provider import", "; done", "", "cd ~/demo-ca/next; ", "").Replace(comment.ReplaceAllString(line, ""))
		for _, c := range strings.Split(line, " | ") {
			if !strings.HasPrefix(c, "for ") {
				all = append(all, c)
			}
		}
	}
	return all
}

// prepared is what the driver of the scenarios does for a command, before there are hosts.
func prepared(command string) (string, bool) {
	for begin, made := range map[string]string{
		"florctl ca init":                     `self._florctl("ca", "init", "--trust-domain", DOMAIN, "--out", root)`,
		"(umask 077; nix key generate-secret": `run("nix", "key", "generate-secret", "--key-name", "demo-1")`,
		"florctl publish":                     `self._florctl("publish", self._ref(), *cluster, "--key", self.operator / "signing.key", "--out", published, "--replace-roots")`,
	} {
		if strings.HasPrefix(command, begin) {
			return made, true
		}
	}
	return "", false
}

var (
	remote = regexp.MustCompile(`^ssh root@(\S+) (.*)`)
	target = regexp.MustCompile(`--flake \.#(\S+)`)
)

// pattern is how a scenario says a command: deployments are functions, of which those
// of the provider host publish too.
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
	case strings.HasPrefix(command, "nixos-rebuild switch"):
		return regexp.MustCompile(deploys(strings.Replace(host, "$host", `\w+`, 1)))
	case command == "flor-provider import":
		return regexp.MustCompile(`flor-provider import <|` + deploys("drhorrible"))
	}
	return regexp.MustCompile(regexp.QuoteMeta(command))
}
