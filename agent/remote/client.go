package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
)

// Session says how to open a session at a service.
type Session struct {
	Service Service
	Account string   // account at the service; empty for the one that the client chooses
	Client  string   // program; empty for the first known one in PATH
	Args    []string // further arguments of the program
}

// client is a program that opens sessions over one protocol.
type client struct {
	programs []string // in order of preference
	packages string   // Debian packages with these programs
	args     func(s Session, host string, port string) ([]string, error)
}

var clients = map[document.Remote]client{
	document.RemoteSSH: {[]string{"ssh"}, "openssh-client", ssh},
	document.RemoteRDP: {[]string{"xfreerdp3", "wlfreerdp3", "xfreerdp", "wlfreerdp"}, "freerdp3-x11, or freerdp2-x11 on Debian 12", rdp},
	document.RemoteVNC: {[]string{"vncviewer", "xtigervncviewer", "xtightvncviewer"}, "tigervnc-viewer", vnc},
}

func ssh(s Session, host, port string) ([]string, error) {
	args := []string{host}
	if s.Account != "" {
		args = []string{"-l", s.Account, host}
	}
	if port != "22" {
		args = append([]string{"-p", port}, args...)
	}
	return append(args, s.Args...), nil
}

// The forwarder has verified who is at the other end, and nobody else can answer at its listener. A
// client that asked about the self-signed certificate of the server would only train people to say
// yes.
func rdp(s Session, host, port string) ([]string, error) {
	args := []string{"/v:" + net.JoinHostPort(host, port), "/cert:ignore"}
	if s.Account != "" {
		args = append(args, "/u:"+s.Account)
	}
	return append(args, s.Args...), nil
}

func vnc(s Session, host, port string) ([]string, error) {
	if s.Account != "" {
		return nil, fmt.Errorf("%s@%s: VNC has no accounts, want the name alone: %[2]s", s.Account, s.Service.Name)
	}
	return append(slices.Clone(s.Args), host+"::"+port), nil // options come before the address
}

// Split returns the account and the service of a name such as deploy@shell. The account may be
// empty.
func Split(name string) (account, service string, err error) {
	i := strings.LastIndex(name, "@")
	if i < 0 {
		return "", name, nil
	}
	account, service = name[:i], name[i+1:]
	if account == "" || strings.HasPrefix(account, "-") || strings.ContainsFunc(account, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", "", fmt.Errorf("account %q, want a name: deploy@%s", account, service)
	}
	return account, service, nil
}

// Command returns the command line that opens a session: the path of the client, and its arguments.
// It names the service by its DNS name if this host knows that name, and else by the address of the
// local listener.
func (s Session) Command(ctx context.Context) ([]string, error) {
	c := clients[s.Service.Protocol]
	path, err := c.find(s.Client)
	if err != nil {
		return nil, fmt.Errorf("%s is a service of protocol %s: %w", s.Service.Name, s.Service.Protocol, err)
	}
	args, err := c.args(s, s.address(ctx), strconv.Itoa(int(s.Service.Listen.Port())))
	if err != nil {
		return nil, err
	}
	return append([]string{path}, args...), nil
}

func (s Session) address(ctx context.Context) string {
	listen := s.Service.Listen.Addr().String()
	if found, err := net.DefaultResolver.LookupHost(ctx, s.Service.At); err == nil && slices.Contains(found, listen) {
		return s.Service.At
	}
	return listen
}

// find returns the path of a program in PATH. If program is empty, find looks for all programs of
// the client.
func (c client) find(program string) (string, error) {
	programs := c.programs
	if program != "" {
		programs = []string{program}
	}
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if errors.Is(err, exec.ErrDot) {
			return "", err
		}
		if err == nil {
			return filepath.Abs(path)
		}
	}
	if program != "" {
		return "", fmt.Errorf("no program %q in PATH: want its name or its path in --client", program)
	}
	return "", fmt.Errorf("none of its clients is in PATH (%s): install the Debian package %s, or name another program with --client", strings.Join(programs, ", "), c.packages)
}

// Quote returns a command line as text that a shell reads as these words.
func Quote(command []string) string {
	var words []string
	for _, w := range command {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-", r)
		}) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}
