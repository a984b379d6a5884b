package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/syslog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/recorder"
	"github.com/florete/florete/agent/sshlogin"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

func newSSHCmd(m *instance) *cobra.Command {
	cmd := &cobra.Command{Use: "ssh", Short: "Configure SSH logins with certificates"}
	cmd.AddCommand(newServerConfigCmd(m), newClientConfigCmd(m), newPrincipalsCmd(m), newKnownHostsCmd(m), newSessionCmd(m))
	return cmd
}

func newServerConfigCmd(m *instance) *cobra.Command {
	var recorded bool
	cmd := newSSHConfigCmd(m, &cobra.Command{
		Use:   "server-config",
		Short: "Print the configuration of sshd for logins with certificates",
		Long: `Print the configuration with which the sshd of this host accepts the certificates of users. It
applies to connections from the forwarder only. Write it to a file in /etc/ssh/sshd_config.d, and
reload sshd, for example with systemctl reload ssh. To undo it, remove that file and reload sshd.

If the sshd is of OpenSSH 9.8 or newer, the configuration exempts the forwarder from penalties
for failed logins. Write it again after an upgrade from an older release.

If a service of this host records sessions, the configuration permits logins by certificate only.
Write it again when the first service begins to record, or the last one ends.

sshd runs flor at each login, and refuses to run it if another account than root can replace
the program.`,
		Example: "  # Accept certificates from the next reload of sshd on.\n  flor ssh server-config > /etc/ssh/sshd_config.d/florete.conf",
	}, func(c sshlogin.Config) (string, error) {
		if c.Recorded = recorded; !recorded {
			doc, err := c.Layout.Manifest()
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			c.Recorded = sshlogin.Records(doc.Manifest())
		}
		return c.Server(), nil
	})
	cmd.Flags().BoolVar(&recorded, "recorded", false, "permit logins by certificate only, even if no manifest in force records sessions")
	return cmd
}

func newClientConfigCmd(m *instance) *cobra.Command {
	var trustDomain string
	cmd := newSSHConfigCmd(m, &cobra.Command{
		Use:   "client-config",
		Short: "Print the configuration of ssh for logins with certificates",
		Long: `Print the configuration with which ssh presents the certificates of this host's users to services
of the cluster, and knows the host keys of these services. Write it to a file in
/etc/ssh/ssh_config.d, which ssh reads when it starts. To undo it, remove that file.`,
		Example: "  # Use certificates from now on.\n  flor ssh client-config > /etc/ssh/ssh_config.d/florete.conf",
	}, func(c sshlogin.Config) (string, error) {
		if c.TrustDomain = trustDomain; trustDomain == "" {
			man, err := manifest(c.Layout)
			if err != nil {
				return "", err
			}
			c.TrustDomain = man.TrustDomain
		}
		return c.Client(), nil
	})
	cmd.Flags().StringVar(&trustDomain, "trust-domain", "", "trust `DOMAIN` of the cluster; by default, that of the manifest in force")
	return cmd
}

// program returns the absolute path under which this program was started.
func program() (string, error) {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// newSSHConfigCmd completes a command that prints a configuration.
func newSSHConfigCmd(m *instance, cmd *cobra.Command, print func(sshlogin.Config) (string, error)) *cobra.Command {
	var c sshlogin.Config
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		c.Instance, c.Penalties = m.Instance, sshlogin.Penalties(cmd.Context())
		if c.Program == "" {
			c.Program, err = program()
		} else {
			c.Program, err = filepath.Abs(c.Program)
		}
		var text string
		if err == nil {
			text, err = print(c)
		}
		if err == nil {
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
		}
		return err
	}
	m.state(cmd, &c.Layout)
	cmd.Flags().StringVar(&c.Program, "program", "", "path of the `PROGRAM` flor in the configuration; by default, the path of this program")
	return cmd
}

func newPrincipalsCmd(m *instance) *cobra.Command {
	var state hostdir.Layout
	cmd := &cobra.Command{
		Use:   "principals ACCOUNT CERTIFICATE",
		Short: "Answer sshd whether a certificate may log in as an account",
		Long: `Print the SPIFFE ID of a certificate if its user may log in as ACCOUNT on this host. sshd runs
this command at each login (AuthorizedPrincipalsCommand). CERTIFICATE is in base64. If the user
may not log in, or the certificate is revoked, the command prints nothing. It writes the reason
to standard error and to the system log, and exits 0. If the service records sessions, the
output makes sshd run flor ssh session.`,
		Example: "  # Find out why alice may not log in as deploy.\n  flor ssh principals deploy \"$(cut -d' ' -f2 id_ed25519-cert.pub)\"",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, recorded, err := sshlogin.Principal(state, args[0], args[1], time.Now())
			var session string
			if err == nil && recorded {
				session, err = m.sessionCommand()
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), session+id.String())
				return err
			}
			reason := fmt.Sprintf("login as %q refused: %v", args[0], err)
			// sshd discards standard error unless it writes its own log there.
			if log, err := syslog.New(syslog.LOG_AUTHPRIV|syslog.LOG_NOTICE, "flor"); err == nil {
				_ = log.Notice(reason)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), reason)
			return nil
		},
	}
	m.state(cmd, &state)
	return cmd
}

// sessionCommand returns the option of authorized_keys with which sshd runs flor ssh session.
func (m *instance) sessionCommand() (string, error) {
	words, err := program()
	if err != nil {
		return "", err
	}
	if m.Instance != "" {
		words += " --instance=" + string(m.Instance)
	}
	return fmt.Sprintf("command=%q ", words+" ssh session"), nil
}

func newSessionCmd(m *instance) *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Run and record an SSH session",
		Long: `Run the shell or the command of a person who has logged in, and record it. sshd runs this command
for logins at services that record sessions. If the recorder does not answer, or the disk is
full, the command runs nothing, prints the reason and exits 1. Otherwise it exits with the
status of the shell or the command.`,
		Example: "  # Find out why sessions cannot be recorded.\n  systemctl status florete-recorder.service",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := recorder.Run(cmd.Context(), socket)
			if err == nil && status != 0 {
				err = exit(status)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "`PATH` of the recorder's socket")
	m.follow(cmd, "socket", recorder.Socket)
	return cmd
}

func newKnownHostsCmd(m *instance) *cobra.Command {
	var state hostdir.Layout
	cmd := &cobra.Command{
		Use:   "known-hosts [HOST]",
		Short: "Print the SSH host keys of services",
		Long: `Print the SSH host keys of the services that this host reaches, in the format of known_hosts(5).
ssh runs this command when it connects (KnownHostsCommand), with the name of the service as HOST,
or [NAME]:PORT if the port is not 22. Without HOST, the command prints the keys of all services.`,
		Example: "  # Print the keys of all services.\n  flor ssh known-hosts",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			man, err := manifest(state)
			if err == nil {
				_, err = fmt.Fprint(cmd.OutOrStdout(), sshlogin.KnownHosts(man, append(args, "")[0]))
			}
			return err
		},
	}
	m.state(cmd, &state)
	return cmd
}

// manifest reads the manifest in force.
func manifest(l hostdir.Layout) (document.Manifest, error) {
	doc, err := l.Manifest()
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no manifest accepted yet in %s: flor doctor", l.Documents())
	}
	if err != nil {
		return document.Manifest{}, err
	}
	return doc.Manifest(), nil
}
