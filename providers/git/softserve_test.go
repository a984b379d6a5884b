package git

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// clone is a git that has the credentials of an answer, as a service has them.
type clone struct {
	t         *testing.T
	dir, base string
}

func newClone(t *testing.T, has map[string]string) clone {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "credentials"), []byte(has["credentials"]), 0o400); err != nil {
		t.Fatal(err)
	}
	return clone{t, dir, has["url"]}
}

func (c clone) git(words ...string) (string, error) {
	helper := "credential." + c.base + ".helper=!cat " + filepath.Join(c.dir, "credentials") + "; :"
	cmd := exec.Command("git", append([]string{"-c", helper, "-c", "user.name=t", "-c", "user.email=t@example"}, words...)...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// does runs a git command that is to work, or to be refused.
func (c clone) does(works bool, words ...string) {
	c.t.Helper()
	out, err := c.git(words...)
	if (err == nil) != works {
		c.t.Fatalf("git %s: %v, want it to work: %t\n%s", strings.Join(words, " "), err, works, out)
	}
}

// pulls checks whether the credentials can read a repository.
func (c clone) pulls(works bool, repository string) {
	c.t.Helper()
	c.does(works, "ls-remote", c.base+"/"+repository+".git")
}

// commits makes a commit in a clone of infra and pushes it.
func (c clone) commits(works bool, name string) {
	c.t.Helper()
	if _, err := os.Stat(filepath.Join(c.dir, "infra")); err != nil {
		c.does(true, "clone", "-q", c.base+"/infra.git", "infra")
	}
	c.does(true, "-C", "infra", "commit", "-q", "--allow-empty", "-m", name)
	c.does(works, "-C", "infra", "push", "-q", "origin", "HEAD:refs/heads/"+name)
}

func TestPull(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	host := newFixture(t, at, dir, "florete-pull", "infra")
	ci := newFixture(t, at, dir, "florete-push", "infra")
	want := ci.want
	want.Access = write
	ci.wants(want)
	writes := newClone(t, ci.Reads())
	writes.commits(true, "main")

	reads := newClone(t, host.Reads())
	reads.does(true, "clone", "-q", "-b", "main", reads.base+"/infra.git", "infra")
	writes.does(true, "-C", "infra", "commit", "-q", "--allow-empty", "-m", "more")
	writes.does(true, "-C", "infra", "push", "-q", "origin", "HEAD:refs/heads/main")
	reads.does(true, "-C", "infra", "pull", "-q")
	if out, _ := reads.git("-C", "infra", "log", "-1", "--format=%s"); out != "more\n" {
		t.Errorf("pulled %q, want the commit that was pushed", out)
	}
	reads.commits(false, "refused")
	reads.pulls(false, "secrets")
	newClone(t, map[string]string{"url": reads.base}).pulls(false, "infra")
}

func TestReplacedBeforeItEnds(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	f := newFixture(t, at, dir, "florete-rotation", "infra")
	first := f.Reads()
	former := newClone(t, first)
	former.pulls(true, "infra")
	f.Passes(lifetime*2/3 - time.Minute)
	if f.Reads()["token"] != first["token"] {
		t.Fatal("replaced before two thirds of its lifetime")
	}
	f.Passes(2 * time.Minute)
	second := f.Reads()
	if second["token"] == first["token"] {
		t.Fatal("not replaced after two thirds of its lifetime")
	}
	if f.Reads()["token"] != second["token"] {
		t.Fatal("replaced twice")
	}
	former.pulls(true, "infra")
	newClone(t, second).pulls(true, "infra")
	f.Passes(lifetime/3 + time.Minute)
	former.pulls(false, "infra")
	newClone(t, second).pulls(true, "infra")
}

// The forge ends a token by itself, whatever becomes of the provider.
func TestForgeEndsIt(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	f := newFixture(t, at, dir, "florete-ends", "infra")
	f.Now = time.Now().Add(-lifetime + 3*time.Second)
	now := f.Now
	want := f.want
	f.forges["forge"] = at
	err := f.At(t.Context(), at, want.Of(), func(ctx context.Context, b forge) error {
		if _, err := b.allow(ctx, want.Account, want.rights(), nil, 0); err != nil {
			return err
		}
		token, err := b.create(ctx, want.Account, "florete-1-a", read, time.Until(now.Add(lifetime)))
		if err != nil {
			return err
		}
		c := newClone(t, values(at, want.Account, token))
		c.pulls(true, "infra")
		return kit.Poll(ctx, func() error {
			if _, err := c.git("ls-remote", c.base+"/infra.git"); err == nil {
				return errors.New("it works after its end")
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGenerationEndsTheFormerSoon(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	f := newFixture(t, at, dir, "florete-generation", "infra")
	former := newClone(t, f.Reads())
	f.Grant.Generation = 2
	next := newClone(t, f.Reads())
	former.pulls(true, "infra")
	f.Passes(lifetime/12 + time.Second)
	former.pulls(false, "infra")
	next.pulls(true, "infra")
}

func TestUnnamed(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	f := newFixture(t, at, dir, "florete-unnamed", "infra")
	c := newClone(t, f.Reads())
	c.pulls(true, "infra")
	grant := f.Grant
	f.Grant.Kind = ""
	f.Passes(0)
	c.pulls(false, "infra")
	var r record
	if err := f.Read(t.Context(), f.want.Of(), &r); err != nil || r.Modified != 0 {
		t.Errorf("kept %+v, %v", r, err)
	}
	f.Passes(0)
	rows, _, err := f.Store.List(t.Context(), server.AuditPrefix)
	if err != nil || len(rows) != 1 || !strings.Contains(string(rows[0].Value), CodeEnded) {
		t.Errorf("audit rows %+v, %v, want one of %s", rows, err, CodeEnded)
	}
	f.Grant = grant
	newClone(t, f.Reads()).pulls(true, "infra")

	f.Grant.Kind = ""
	delete(f.forges, "forge")
	if err := f.Sweep(t.Context(), f.Now, f.Compiled()); err == nil || !strings.Contains(err.Error(), "nor its forge") {
		t.Errorf("%v, want that its forge is not there", err)
	}
}

// TestScopeChanges checks that the rights of a token follow the policy, for delivered tokens too.
func TestScopeChanges(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	f := newFixture(t, at, dir, "florete-scope", "infra")
	want := f.want
	want.Access = write
	f.wants(want)
	c := newClone(t, f.Reads())
	c.commits(true, "scope")
	want.Access = read
	f.wants(want)
	f.Passes(0)
	c.pulls(true, "infra")
	c.does(true, "-C", "infra", "commit", "-q", "--allow-empty", "-m", "x")
	c.does(false, "-C", "infra", "push", "-q", "origin", "HEAD:refs/heads/scope")
	want.Repositories = []string{"secrets"}
	f.wants(want)
	f.Passes(0)
	c.pulls(false, "infra")
	c.pulls(true, "secrets")
}

// A process that ended between making a token and keeping it left one that nobody has.
func TestCutOff(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	f := newFixture(t, at, dir, "florete-cut", "infra")
	first := newClone(t, f.Reads())
	f.Now = f.Now.Add(lifetime * 3 / 4)
	want := f.want
	want.Generation = 1
	var r record
	err := f.Read(t.Context(), want.Of(), &r)
	if err == nil {
		r, err = f.keep(t.Context(), want.Of(), r.next(f.Now, want))
	}
	if err != nil {
		t.Fatal(err)
	}
	var lost string
	err = f.At(t.Context(), at, want.Of(), func(ctx context.Context, b forge) error {
		lost, err = b.create(ctx, want.Account, r.Tokens[0].Name, read, lifetime)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	newClone(t, values(at, want.Account, lost)).pulls(true, "infra")
	newClone(t, f.Reads()).pulls(true, "infra")
	newClone(t, values(at, want.Account, lost)).pulls(false, "infra")
	first.pulls(true, "infra")
}

// With another state, and another sealing key, what hosts have works until it ends.
func TestStateIsLost(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	f := newFixture(t, at, dir, "florete-lost", "infra", "secrets")
	want := f.want
	want.Access = write
	f.wants(want)
	first := newClone(t, f.Reads())
	first.commits(true, "lost")

	other := newFixture(t, at, dir, "florete-lost", "infra")
	next := newClone(t, other.Reads())
	next.pulls(true, "infra")
	first.pulls(true, "infra")
	first.does(true, "-C", "infra", "commit", "-q", "--allow-empty", "-m", "x")
	first.does(false, "-C", "infra", "push", "-q", "origin", "HEAD:refs/heads/lost")
	other.Passes(lifetime * 3 / 4)
	newest := newClone(t, other.Reads())
	other.Passes(lifetime/4 + time.Minute)
	first.pulls(false, "infra")
	newest.pulls(true, "infra")
}

func TestSoftServeRefuses(t *testing.T) {
	t.Parallel()
	at, dir := softAt(t)
	newFixture(t, at, t.TempDir(), "florete-refused", "infra").refused("user \"admin\" at " + at.Address + ", by nothing, for there is none in ")
	newFixture(t, at, dir, "florete-refused", "nowhere").refused("repo collab add nowhere: repository not found")

	other := t.TempDir()
	kit.WriteHostKey(filepath.Join(other, "forge"))
	newFixture(t, at, other, "florete-refused", "infra").refused("unable to authenticate")
	if err := os.WriteFile(filepath.Join(other, "forge"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	newFixture(t, at, other, "florete-refused", "infra").refused("want a private key of SSH")

	away := at
	away.Address = kit.Address()
	newFixture(t, away, dir, "florete-refused", "infra").refused("connection refused")
	_, port, _ := net.SplitHostPort(at.Address)
	away.Address = "192.0.2.1:" + port
	newFixture(t, away, dir, "florete-refused", "infra").refused("in clear")
}
