package local

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/florete/florete/tests/kit"
)

// Operator does the work of a cluster's operator in tests and in the demo. The directory Work
// contains the flake in the folder cluster, the operator's keys in the folder operator, and a
// folder with the documents of each commit.
type Operator struct {
	Repo string // path of a checkout of Florete
	Bin  string // directory with flor, florctl and flor-provider
	Work string
}

// Path joins the parts of a path below the directory Work.
func (o Operator) Path(parts ...string) string {
	return filepath.Join(append([]string{o.Work}, parts...)...)
}

// Checkout copies the flake of a cluster to the directory Work. It also copies the flake of
// Florete, because the former has it as an input.
func (o Operator) Checkout(cluster string) error {
	for _, dir := range []string{"florete", "operator"} {
		if err := os.MkdirAll(o.Path(dir), 0o700); err != nil {
			return err
		}
	}
	for _, part := range []string{"flake.nix", "flake.lock", "nix", "modules"} {
		from := filepath.Join(o.Repo, part)
		if !exists(from) {
			continue
		}
		if err := kit.CopyLibrary(o.Path("florete", part), from); err != nil {
			return err
		}
	}
	return Copy(cluster, o.Path("cluster"))
}

// SigningKey generates a key for signing documents, with the given name, and writes it to
// operator/signing.key. It returns the public key.
func (o Operator) SigningKey(ctx context.Context, name string) (string, error) {
	secret, err := o.Run(ctx, "nix", "key", "generate-secret", "--key-name", name)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(o.Path("operator", "signing.key"), []byte(secret), 0o600); err != nil {
		return "", err
	}
	convert := exec.CommandContext(ctx, "nix", "key", "convert-secret-to-public")
	convert.Stdin = strings.NewReader(secret)
	public, err := convert.Output()
	if err != nil {
		return "", fmt.Errorf("nix key convert-secret-to-public: %w", err)
	}
	return strings.TrimSpace(string(public)), nil
}

// Lock creates the git repository of the cluster and locks the inputs of its flake. Later commands
// then need no --override-input, which would make Nix treat the flake as changed.
func (o Operator) Lock(ctx context.Context) error {
	if err := o.git(ctx, time.Now(), "init", "--quiet", "--initial-branch=main"); err != nil {
		return err
	}
	if err := o.git(ctx, time.Now(), "add", "--all"); err != nil {
		return err
	}
	_, err := o.Run(ctx, "nix", "flake", "lock", o.flakeRef(), "--override-input", "florete", "path:"+o.Path("florete"))
	return err
}

// Commit commits the flake, with the given time as the time of the commit, and compiles and signs
// its documents. It writes the documents to the folder with the given name, for Publish.
func (o Operator) Commit(ctx context.Context, at time.Time, message, name string) error {
	if err := o.Record(ctx, at, message); err != nil {
		return err
	}
	if _, err := o.Run(ctx, "florctl", "compile", o.flakeRef(), "--out", o.Path(name)); err != nil {
		return err
	}
	_, err := o.Run(ctx, "florctl", "publish", o.flakeRef(), "--key", o.Path("operator", "signing.key"), "--out", o.Signed(name))
	return err
}

// Record commits the flake, with the given time as the time of the commit. It compiles and signs
// nothing.
func (o Operator) Record(ctx context.Context, at time.Time, message string) error {
	if err := o.git(ctx, at, "add", "--all"); err != nil {
		return err
	}
	return o.git(ctx, at, "commit", "--quiet", "--message", message)
}

// Signed returns the path of the file with the signed documents that Commit has written under a
// name.
func (o Operator) Signed(name string) string { return o.Path("signed-" + name) }

// Publish imports the signed documents of a commit at the provider on a host. It first waits until
// the provider has created its state store.
func (o Operator) Publish(ctx context.Context, h *Host, name string) error {
	if err := await(h, filepath.Join(h.Dir, "provider", "config", "state.db")); err != nil {
		return err
	}
	in, err := os.Open(o.Signed(name))
	if err != nil {
		return err
	}
	defer in.Close()
	cmd := exec.CommandContext(ctx, filepath.Join(o.Bin, "flor-provider"), "import", "--settings", filepath.Join(h.Dir, "provider.hujson"))
	cmd.Stdin = in
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("flor-provider import of %s: %w: %s", name, err, out)
	}
	return nil
}

// await waits until a process of the host has created the file at path.
func await(h *Host, path string) error {
	for end := time.Now().Add(Limit); !exists(path); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s: no %s within %s: %v", h.Name, filepath.Base(path), Limit, h.Ended())
		}
	}
	return nil
}

func (o Operator) flakeRef() string { return "git+file://" + o.Path("cluster") }

func (o Operator) git(ctx context.Context, at time.Time, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", o.Path("cluster"), "-c", "user.name=operator", "-c", "user.email=operator@demo.flor", "-c", "commit.gpgsign=false"}, args...)...)
	stamp := at.Format(time.RFC3339)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+stamp, "GIT_COMMITTER_DATE="+stamp, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}

// Issue creates the issuing certificate of a provider host: it signs the provider's certificate
// request with the root. Afterwards, the host has put its documents in force, and its provider is
// stopped. The provider's settings must name the files issuing.crt and provider in the directory of
// the host.
func (o Operator) Issue(ctx context.Context, h *Host) error {
	if _, _, err := h.Once(ctx); err != nil {
		return err
	}
	if err := h.Provide("cert"); err != nil {
		return err
	}
	csr := filepath.Join(h.Dir, "provider", "cert", "issuing.csr")
	if err := await(h, csr); err != nil {
		return err
	}
	if err := h.Stop(ProviderPart("cert"), syscall.SIGTERM); err != nil {
		return err
	}
	_, err := o.Run(ctx, "florctl", "ca", "sign", csr, "--ca-cert", o.Path("operator", "ca.crt"), "--ca-key", o.Path("operator", "ca.key"), "--out", filepath.Join(h.Dir, "issuing.crt"))
	return err
}

// Copy copies a file, or a directory with all files in it.
func Copy(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// Run runs a program and returns its standard output. The program is in the directory Bin or, if
// there is none of that name, in PATH. If it fails, the error contains its standard error.
func (o Operator) Run(ctx context.Context, name string, args ...string) (string, error) {
	if own := filepath.Join(o.Bin, name); exists(own) {
		name = own
	}
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args[:min(2, len(args))], " "), err, errs.String())
	}
	return out.String(), nil
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }
