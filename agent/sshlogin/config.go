// Package sshlogin lets the users of a cluster log in over SSH without keys and passwords of their
// own. It configures OpenSSH on both sides, and answers what sshd and ssh ask at each login:
//
//   - sshd asks whether a certificate may log in as an account (Principal). The certificate says who
//     logs in, and the manifest in force says as which accounts.
//   - ssh asks for the host keys of a service (KnownHosts), which are in the manifest too.
//
// No file has to be kept up to date, so a new manifest or revocation list applies to the next login.
package sshlogin

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
)

// NeedKeys is the ID of the need for the keys of the certificate authority. NeedUser is the prefix
// of the IDs of needs for certificates. The name of the account follows it.
const (
	NeedKeys = "ssh-keys"
	NeedUser = "ssh-user-"
)

// Account is the account under which sshd asks. It owns no file and needs none, because every
// account may read documents and revocation lists. It exists on all distributions.
const Account = "nobody"

// Config is the configuration of OpenSSH for one instance of Florete on a host.
type Config struct {
	Instance    hostdir.Instance
	Layout      hostdir.Layout
	Program     string // absolute path of flor
	TrustDomain string // needed for Client only

	// Recorded is true if a service of this host records sessions. Then certificates are the only
	// way to log in, since sshd records no other logins.
	Recorded bool

	// Penalties is true if sshd refuses connections from addresses of which logins failed. All
	// callers have the address of the forwarder, so one of them would lock out all others.
	Penalties bool
}

// Penalties reports whether the OpenSSH of this host can refuse clients for a while after failed
// logins (PerSourcePenalties of sshd_config(5)). It can since release 9.8.
func Penalties(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "ssh", "-V").CombinedOutput()
	var major, minor int
	if n, _ := fmt.Sscanf(string(out), "OpenSSH_%d.%d", &major, &minor); err != nil || n < 2 {
		return false
	}
	return major > 9 || major == 9 && minor >= 8
}

// loopback lists the addresses of the forwarder.
const loopback = "127.0.0.0/8,::1"

// command returns the command line that runs a command of flor ssh. The argument token stands for the
// arguments, which ssh or sshd fills in without a shell.
func (c Config) command(name, token string) string {
	words := c.Program
	if c.Instance != "" {
		words += " --instance=" + string(c.Instance)
	}
	words += " ssh " + name
	if c.Layout != c.Instance.State() {
		words += " --state=" + string(c.Layout)
	}
	return words + " -- " + token
}

// Server returns the configuration for sshd. Only connections from the loopback interface, where
// the forwarder is, are admitted by a certificate: a certificate is worth nothing without access to
// the service. If sshd_config itself permits files with principals, they would bypass the manifest.
func (c Config) Server() string {
	var exempt, only string
	if c.Recorded {
		only = onlyCertificates
	}
	if c.Penalties {
		exempt = "PerSourcePenaltyExemptList " + loopback + "\n"
	}
	return fmt.Sprintf(`# Logins with certificates of Florete. Written by: %s ssh server-config
%sMatch Address %s
	TrustedUserCAKeys %s
	AuthorizedPrincipalsCommand %s
	AuthorizedPrincipalsCommandUser %s
	AuthorizedPrincipalsFile none
%sMatch all
`, c.Instance.Program("flor"), exempt, loopback, c.file(NeedKeys, document.FileSSHAuthority), c.command("principals", "%u %k"), Account, only)
}

// onlyCertificates makes sshd accept certificates alone. Without SHLVL, bash would first run the
// account's own .bashrc, which could run a shell that is not recorded.
const onlyCertificates = `	AuthenticationMethods publickey
	AuthorizedKeysFile none
	AuthorizedKeysCommand none
	PermitUserRC no
	SetEnv SHLVL=2
`

// Client returns the configuration for ssh. It applies to all services of the trust domain. An
// account without a certificate uses its own keys there.
func (c Config) Client() string {
	names := "*." + c.TrustDomain + spiffe.Suffix
	key := c.file(NeedUser+"%u", document.FileSSHKey)
	return fmt.Sprintf(`# Logins with certificates of Florete. Written by: %s ssh client-config
Host %s
	KnownHostsCommand %s
Match host %s exec "test -r %s"
	IdentityFile %s
	CertificateFile %s
Match all
`, c.Instance.Program("flor"), names, c.command("known-hosts", "%H"), names, key, key, c.file(NeedUser+"%u", document.FileSSHCertificate))
}

func (c Config) file(need, name string) string {
	return filepath.Join(hostdir.Current(c.Layout.Need(need)), name)
}

// called matches the command lines of flor in the configuration of ssh and sshd.
var called = regexp.MustCompile(`(?m)^\s*(?:AuthorizedPrincipalsCommand|KnownHostsCommand)\s+(\S+) .*\bssh (?:principals|known-hosts) `)

// ProgramIn returns the path of flor in the configuration of ssh or sshd. It returns "" if the text
// does not name flor.
func ProgramIn(text string) string {
	if m := called.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
