package sshlogin_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/agent/sshlogin"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestDebian12 and TestDebian13 log in with the ssh and the sshd of a Debian release, under the
// configuration that flor prints for both.
func TestDebian12(t *testing.T) { testDebian(t, "12") }
func TestDebian13(t *testing.T) { testDebian(t, "13") }

func testDebian(t *testing.T, release string) {
	variable := "FLORETE_SSHD_" + release + "_ROOT"
	root := os.Getenv(variable)
	if _, err := os.Stat(filepath.Join(root, "usr/sbin/sshd")); root == "" || err != nil {
		t.Skipf("NOT RUN: no openssh-server, openssh-client, dash, rsync and git of Debian %s in %s: tests/run fetches them", release, variable)
	}
	if !agenttest.OwnNetwork(t) {
		return
	}
	m := newMachine(t, root)
	past, future := unixtime.Of(time.Now().Add(-time.Second)), unixtime.Of(time.Now().Add(time.Hour))
	foreign := kit.NewHostKey()
	type setting struct {
		as       string        // account; default deploy
		until    unixtime.Time // end of the login
		revoked  *revocation.Target
		ca       ssh.Signer
		change   func(*ssh.Certificate)
		ssh      []string // options of ssh
		reason   string   // reason that flor logs; empty if sshd does not run it, or the login is permitted
		accepted bool
	}
	for _, x := range []struct {
		name string
		setting
	}{
		{"permitted", setting{accepted: true}},
		{"until later", setting{until: future, accepted: true}},
		{"until a moment ago", setting{until: past, reason: "no login as deploy"}},
		{"another account", setting{as: "other", reason: "no login as other"}},
		{"root", setting{as: "root", reason: "no login as root"}},
		{"revoked", setting{revoked: &revocation.Target{ID: alice}, reason: "user/alice is revoked"}},
		{"another is revoked", setting{revoked: &revocation.Target{ID: bob}, accepted: true}},
		{"older ones are revoked", setting{revoked: &revocation.Target{Before: []spiffe.ID{alice}}, reason: "issued before"}},
		// It will be issued in a minute, and is valid already, as all certificates are.
		{"older ones are revoked, newer", setting{revoked: &revocation.Target{Before: []spiffe.ID{alice}}, change: func(c *ssh.Certificate) { c.ValidAfter += 60 }, accepted: true}},
		{"its node is revoked", setting{revoked: &revocation.Target{ID: kit.ID("node/laptop")}, reason: "node/laptop, which was given user/alice, is revoked"}},
		{"from outside of loopback", setting{ssh: []string{"-o", "BindAddress=" + outside}}},
		{"from another CA", setting{ca: foreign}},
		{"expired", setting{change: func(c *ssh.Certificate) { c.ValidAfter -= 7200; c.ValidBefore -= 7200 }}},
		{"host certificate", setting{change: func(c *ssh.Certificate) { c.CertType = ssh.HostCert }}},
		{"principal of another", setting{as: "other", change: func(c *ssh.Certificate) { c.ValidPrincipals = []string{bob.String()} }, reason: "want only the key ID"}},
		{"account as principal", setting{change: named("deploy"), reason: "key ID"}},
		{"root as principal", setting{as: "root", change: named("root"), reason: "key ID"}},
		{"another's principal beside its own", setting{as: "other", change: func(c *ssh.Certificate) { c.ValidPrincipals = append(c.ValidPrincipals, bob.String()) }, reason: "want only the key ID"}},
		{"permitted again", setting{accepted: true}},
	} {
		t.Run(x.name, func(t *testing.T) {
			if x.as == "" {
				x.as = "deploy"
			}
			m.permit(document.Login{Account: "deploy", Until: x.until})
			var revoked []revocation.Target
			if x.revoked != nil {
				revoked = append(revoked, *x.revoked)
			}
			revoke(m.state, revoked...)
			ca := m.ca
			if x.ca != nil {
				ca = x.ca
			}
			m.deliver(certificate(m.public, ca, alice, x.change))
			out, err := m.ssh(append(x.ssh, x.as+"@shell.eu.demo.flor.rete", "echo in as $USER")...)
			m.wantReason(t, x.reason)
			if want := "in as " + x.as + "\n"; x.accepted && (err != nil || out != want) {
				t.Errorf("%v: %q, want %q", err, out, want)
			} else if !x.accepted && (err == nil || !strings.Contains(out, "Permission denied (publickey)")) {
				t.Errorf("%v: %q, want a refusal", err, out)
			}
		})
	}
	t.Run("host certificate from another client", func(t *testing.T) {
		c := certificate(m.public, m.ca, alice, func(c *ssh.Certificate) { c.CertType = ssh.HostCert })
		if err := m.dial("deploy", c); err == nil {
			t.Error("in")
		}
		m.wantReason(t, "not a user certificate")
	})
	t.Run("names of accounts", func(t *testing.T) { m.oddNames(t) })
	t.Run("flor remote", func(t *testing.T) { m.remote(t) })
	t.Run("rsync and git", func(t *testing.T) { m.tools(t) })
	t.Run("recorded", func(t *testing.T) { m.recorded(t) })
	t.Run("host key", func(t *testing.T) {
		m.hostKeys = []string{kit.Authorized(foreign.PublicKey())}
		m.permit(document.Login{Account: "deploy"})
		if out, err := m.ssh("deploy@shell.eu.demo.flor.rete", "true"); err == nil || !strings.Contains(out, "Host key verification failed") {
			t.Errorf("%v: %q", err, out)
		}
	})
	if files, err := filepath.Glob(filepath.Join(m.dir, "home/alice/.ssh/*")); err != nil || len(files) > 0 {
		t.Errorf("ssh wrote %q, %v", files, err)
	}
}

// oddNames logs in under names that are flags of flor, tokens of sshd or words of a list, as far as
// the C library permits these as names of accounts.
func (m *machine) oddNames(t *testing.T) {
	m.permit(document.Login{Account: "deploy"})
	revoke(m.state)
	c := certificate(m.public, m.ca, alice, nil)
	for _, name := range oddNames {
		if err := m.dial(name, c); err == nil {
			t.Errorf("in as %q", name)
		}
		m.wantReason(t, fmt.Sprintf("login as %q refused: user/alice has no login", name))
	}
	for _, name := range []string{"--help", "deploy\nother", "deploy other"} {
		if err := m.dial(name, c); err == nil {
			t.Errorf("in as %q", name)
		}
		m.wantReason(t, "")
	}
	if err := m.dial("deploy", c); err != nil {
		t.Error(err)
	}
}

// remote logs in by flor remote, which starts the ssh of the machine.
func (m *machine) remote(t *testing.T) {
	m.permit(document.Login{Account: "deploy"})
	revoke(m.state)
	m.deliver(certificate(m.public, m.ca, alice, nil))
	for _, x := range []struct{ words, want string }{
		{"", "NAME      PROTOCOL  HOST  AT\nshell.eu  ssh       eu    shell.eu.demo.flor.rete:22\n"},
		{"deploy@shell -- echo in as $USER", "in as deploy\n"},
		{"deploy@shell.eu -- exit 7", "exit status 7"},
		{"other@shell -- true", "Permission denied (publickey)"},
		{"--print deploy@shell -- uptime -p", "/usr/bin/ssh -l deploy shell.eu.demo.flor.rete uptime -p\n"},
		{"shel", "did you mean shell?"},
	} {
		out, err := m.asAlice(append([]string{"/opt/flor", "remote"}, strings.Fields(x.words)...)...)
		if err == nil && out != x.want || err != nil && !strings.Contains(out+err.Error(), x.want) {
			t.Errorf("flor remote %s: %v: %q, want %q", x.words, err, out, x.want)
		}
		m.wantReason(t, map[bool]string{true: "no login as other"}[strings.HasPrefix(x.words, "other")])
	}
}

// tools copies files and pushes commits by programs that start the ssh of the machine.
func (m *machine) tools(t *testing.T) {
	m.permit(document.Login{Account: "deploy"})
	revoke(m.state)
	m.deliver(certificate(m.public, m.ca, alice, nil))
	check(t, os.Chmod(m.path("tmp"), 0o777|os.ModeSticky))
	check(t, os.Chown(m.path("home/alice"), uidAlice, uidAlice))
	const at = "deploy@shell.eu.demo.flor.rete"
	for _, script := range []string{
		"echo in > sent; rsync sent " + at + ":/tmp/there; rsync " + at + ":/tmp/there came; read -r line < came; echo $line",
		"ssh " + at + " git init --quiet --bare --initial-branch=main /tmp/repository; git clone --quiet " + at + ":/tmp/repository work 2> warnings; cd work\n" +
			"git -c user.name=alice -c user.email=alice@example.org commit --quiet --allow-empty --message in; git push --quiet origin HEAD:main\n" +
			"ssh " + at + " git -C /tmp/repository log --format=%s main",
	} {
		if out, err := m.asAlice("/bin/sh", "-ec", "cd\n"+script); err != nil || out != "in\n" {
			t.Errorf("%s\n%v: %q", script, err, out)
		}
	}
}

// oddNames are accounts of the machine.
var oddNames = []string{"%k", "help", "deploy,other"}

// dial logs in with a client that sends any name and any certificate.
func (m *machine) dial(account string, certificate *ssh.Certificate) error {
	signer, err := ssh.NewCertSigner(certificate, m.key)
	if err != nil {
		return err
	}
	c, err := ssh.Dial("tcp", listen.String(), &ssh.ClientConfig{
		User: account, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: kit.Patience,
	})
	if err == nil {
		c.Close()
	}
	return err
}

// outside is an address of the machine that is not on loopback. The service is at the address listen.
const outside = "192.0.2.7"

var listen = netip.MustParseAddrPort("127.1.2.3:22")

// machine is a directory in which ssh and sshd of a Debian release see a whole machine. On it, sshd
// runs and the state of flor is as activation writes it.
type machine struct {
	dir      string
	state    hostdir.Layout // as the test sees it
	pid      int            // of sshd
	ca, key  ssh.Signer     // of the user
	public   ssh.PublicKey
	secret   []byte // private key of the user as ssh reads it
	hostKeys []string
	record   *document.Record // of the service
	log      net.PacketConn   // of the machine, where flor logs
}

// Accounts of the machine.
const (
	uidAlice = 1000
	uidFirst = 1001
)

func newMachine(t *testing.T, root string) *machine {
	t.Helper()
	m := &machine{dir: t.TempDir(), ca: kit.NewHostKey()}
	m.state = hostdir.Layout(m.path("var/lib/florete"))
	if err := kit.Programs(t.Context(), "../..", m.path("opt"), "flor"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"dev", "etc/ssh/sshd_config.d", "etc/ssh/ssh_config.d", "run/sshd", "var/lib/florete", "home/alice", "proc", "tmp"} {
		check(t, os.MkdirAll(m.path(dir), 0o755))
	}
	passwd := "root:*:0:0::/:/bin/sh\nsshd:*:100:65534::/run/sshd:/usr/sbin/nologin\nnobody:*:65534:65534::/:/usr/sbin/nologin\nalice:*:1000:1000::/home/alice:/bin/sh\n"
	for i, name := range append([]string{"deploy", "other"}, oddNames...) {
		passwd += fmt.Sprintf("%s:*:%d:65534::/tmp:/bin/sh\n", name, uidFirst+i)
	}
	m.write(t, "etc/passwd", passwd)
	m.write(t, "etc/group", "root:*:0:\nnogroup:*:65534:\nalice:*:1000:\n")
	m.write(t, "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
	m.write(t, "etc/hosts", listen.Addr().String()+" shell.eu.demo.flor.rete\n")
	m.write(t, "etc/ssh/ssh_config", "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n\tSendEnv LANG LC_*\n")
	m.write(t, "etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\nHostKey /etc/ssh/ssh_host_ed25519_key\nKbdInteractiveAuthentication no\nPasswordAuthentication no\n")
	m.hostKeys = []string{kit.Authorized(kit.WriteHostKey(m.path("etc/ssh/ssh_host_ed25519_key")))}

	_, key, err := ed25519.GenerateKey(nil)
	check(t, err)
	m.key, err = ssh.NewSignerFromKey(key)
	check(t, err)
	m.public = m.key.PublicKey()
	block, err := ssh.MarshalPrivateKey(key, "")
	check(t, err)
	m.secret = pem.EncodeToMemory(block)
	kit.Swap(hostdir.Current(m.state.Need(sshlogin.NeedKeys)), map[string][]byte{document.FileSSHAuthority: []byte(kit.Authorized(kit.NewHostKey().PublicKey()) + "\n" + kit.Authorized(m.ca.PublicKey()) + "\n")})
	m.permit()

	m.log, err = net.ListenPacket("unixgram", m.path("dev/log"))
	check(t, err)
	t.Cleanup(func() { m.log.Close() })
	check(t, os.Chmod(m.path("dev/log"), 0o666))
	out, err := exec.Command("ip", "address", "add", outside+"/32", "dev", "lo").CombinedOutput()
	if err != nil {
		t.Fatalf("ip: %v: %s", err, out)
	}
	m.start(t, root)
	return m
}

// start runs sshd until the test ends. The programs of Debian are mounted in a namespace of its own.
func (m *machine) start(t *testing.T, root string) {
	t.Helper()
	script := "set -e; cd " + m.dir + "\n"
	for _, device := range []string{"dev/null", "dev/urandom"} {
		m.write(t, device, "")
		script += "mount --bind /" + device + " " + m.path(device) + "\n"
	}
	for _, dir := range []string{"usr", "bin", "sbin", "lib", "lib64"} {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			check(t, os.Symlink("usr/"+dir, m.path(dir)))
			continue
		}
		check(t, os.Mkdir(m.path(dir), 0o755))
		script += "mount --bind " + filepath.Join(root, dir) + " " + m.path(dir) + "\n"
	}
	script += "mkdir dev/pts; mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts; ln -s pts/ptmx dev/ptmx\n"
	script += "chroot . /opt/flor ssh server-config > etc/ssh/sshd_config.d/florete.conf\nchroot . /opt/flor ssh client-config > etc/ssh/ssh_config.d/florete.conf\n"
	script += "exec chroot " + m.dir + " /usr/sbin/sshd -D -e\n"
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", script)
	var log buffer
	cmd.Stderr = &log
	check(t, cmd.Start())
	m.pid = cmd.Process.Pid
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	kit.Eventually(t, "sshd", func() bool {
		select {
		case <-ended:
			t.Fatal("sshd has ended")
		default:
		}
		c, err := net.Dial("tcp", listen.String())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(t *testing.T, name, text string) {
	t.Helper()
	check(t, os.WriteFile(m.path(name), []byte(text), 0o644))
}

// permit puts a manifest in force in which alice has the logins, and bob may log in as other. The
// machine reaches the service itself.
func (m *machine) permit(logins ...document.Login) {
	accept(m.state, m.record, []document.Allow{{ID: alice, Logins: logins}, {ID: bob, Logins: []document.Login{{Account: "other"}}}},
		document.Reachable{ID: shell, Callers: []spiffe.ID{alice}, Listen: listen, Remote: document.RemoteSSH, HostKeys: m.hostKeys})
}

// deliver gives alice her key and the certificate, as activation does.
func (m *machine) deliver(c *ssh.Certificate) {
	current := hostdir.Current(m.state.Need(sshlogin.NeedUser + "alice"))
	kit.Swap(current, map[string][]byte{document.FileSSHKey: m.secret, document.FileSSHCertificate: ssh.MarshalAuthorizedKey(c)})
	key := filepath.Join(current, document.FileSSHKey)
	if err := errors.Join(os.Chmod(key, 0o400), os.Chown(key, uidAlice, uidAlice)); err != nil {
		panic(err)
	}
}

// ssh runs ssh as alice, without a terminal. It returns what ssh prints.
func (m *machine) ssh(args ...string) (string, error) {
	return m.asAlice(append([]string{"/usr/bin/ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"}, args...)...)
}

// asAlice runs a program of the machine as alice, without a terminal. It returns what the program
// prints.
func (m *machine) asAlice(words ...string) (string, error) { return m.asAliceWith(nil, words...) }

// asAliceWith is like asAlice, with standard input.
func (m *machine) asAliceWith(in io.Reader, words ...string) (string, error) {
	return m.as(uidAlice, []string{"HOME=/home/alice", "SHELL=/bin/sh"}, in, words...)
}

// as runs a program of the machine under an account, with these variables.
func (m *machine) as(uid int, env []string, in io.Reader, words ...string) (string, error) {
	cmd := exec.Command("nsenter", slices.Concat([]string{
		"--target", fmt.Sprint(m.pid), "--mount", "chroot", fmt.Sprintf("--userspec=%d:%[1]d", uid), m.dir,
	}, words)...)
	cmd.Env, cmd.Stdin = append([]string{"PATH=/usr/sbin:/usr/bin:/bin"}, env...), in
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// wantReason checks the reasons for refusals that flor has logged since the last call. It wants one
// with this text, or none if the text is empty.
func (m *machine) wantReason(t *testing.T, text string) {
	t.Helper()
	const end = "nothing more was logged before this"
	c, err := net.Dial("unixgram", m.log.LocalAddr().String())
	check(t, err)
	defer c.Close()
	_, err = io.WriteString(c, end)
	check(t, err)
	var logged []string
	for b := make([]byte, 1<<14); ; {
		n, _, err := m.log.ReadFrom(b)
		check(t, err)
		if string(b[:n]) == end {
			break
		}
		logged = append(logged, string(b[:n]))
	}
	if text == "" && len(logged) > 0 || text != "" && !slices.ContainsFunc(logged, func(l string) bool { return strings.Contains(l, text) }) {
		t.Errorf("logged %q, want %q", logged, text)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
