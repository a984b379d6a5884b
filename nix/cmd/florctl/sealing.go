package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/providers/pkcs11"
	"github.com/florete/florete/providers/secretfile"
)

// sealing is how a root's key is kept: as it is, sealed with age, or by a PKCS #11 token.
type sealing struct {
	token        string // URI of the key
	to           []string
	byPassphrase bool
	passphrase   string // file
}

func sealingFlags(cmd *cobra.Command) *sealing {
	s := &sealing{}
	f := cmd.Flags()
	f.StringArrayVar(&s.to, "seal-to", nil, "seal the key with age to a `RECIPIENT`, age1… or an SSH public key; several times")
	f.BoolVar(&s.byPassphrase, "passphrase", false, "seal the key with age by a passphrase, which is read from the terminal")
	f.StringVar(&s.passphrase, "passphrase-file", "", "the same by a passphrase in a `FILE`")
	f.StringVar(&s.token, "pkcs11", "", "keep the key on a PKCS #11 token, which makes it unless it has it: `URI` (RFC 7512), pkcs11:token=LABEL;object=LABEL?pin-source=FILE&module-path=FILE; default module "+pkcs11.DefaultModule+"; without pin-source the PIN is read from the terminal")
	cmd.MarkFlagsMutuallyExclusive("seal-to", "passphrase", "passphrase-file", "pkcs11")
	return s
}

// recipients are those that the flags name, none for a key that is not sealed.
func (s *sealing) recipients(key string) (all []age.Recipient, err error) {
	for _, text := range s.to {
		var r age.Recipient
		if strings.HasPrefix(text, "ssh-") {
			r, err = agessh.ParseRecipient(text)
		} else {
			r, err = age.ParseX25519Recipient(text)
		}
		if err != nil {
			return nil, fmt.Errorf("--seal-to %q: %w: want a public key as age-keygen prints it", text, err)
		}
		all = append(all, r)
	}
	var passphrase string
	switch {
	case s.passphrase != "":
		passphrase, err = readPassphrase(s.passphrase)
	case s.byPassphrase:
		if passphrase, err = prompt("new passphrase of "+key, fromFile); err != nil {
			return nil, err
		}
		var again string
		if again, err = prompt("the same again", fromFile); err == nil && again != passphrase {
			err = errors.New("the two passphrases differ")
		}
	default:
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	return []age.Recipient{r}, nil
}

// opening adds the flags that open a sealed key. The function it returns gives identities:
// the terminal is used where nothing else opens it.
func opening(cmd *cobra.Command) func(key string) ([]age.Identity, error) {
	identity := cmd.Flags().String("identity", "", "age identity `FILE`, or SSH private key, that opens a sealed key")
	passphrase := cmd.Flags().String("passphrase-file", "", "passphrase `FILE` that opens a sealed key; default: the terminal")
	return func(key string) (all []age.Identity, err error) {
		if *identity != "" {
			b, err := secretfile.ReadFile(*identity)
			if err != nil {
				return nil, err
			}
			if bytes.HasPrefix(b, []byte("-----BEGIN")) {
				i, err := agessh.ParseIdentity(b)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", *identity, err)
				}
				all = append(all, i)
			} else if all, err = age.ParseIdentities(bytes.NewReader(b)); err != nil {
				return nil, fmt.Errorf("%s: %w", *identity, err)
			}
		}
		return append(all, passphraseOf{key, *passphrase}), nil
	}
}

// passphraseOf is the identity of a key that is sealed by a passphrase, which nobody types
// for another key.
type passphraseOf struct{ key, file string }

// Unwrap reads the passphrase only where one opens the key.
func (p passphraseOf) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	if len(stanzas) != 1 || stanzas[0].Type != "scrypt" {
		return nil, errors.New("no passphrase opens it, want the --identity FILE of a key that it is sealed to")
	}
	var passphrase string
	var err error
	if p.file != "" {
		passphrase, err = readPassphrase(p.file)
	} else {
		passphrase, err = prompt("passphrase of "+p.key, fromFile)
	}
	if err != nil {
		return nil, err
	}
	i, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	return i.Unwrap(stanzas)
}

func readPassphrase(file string) (string, error) {
	b, err := secretfile.ReadFile(file)
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(b), "\r\n")
	if text == "" {
		return "", fmt.Errorf("%s: no passphrase in it", file)
	}
	return text, nil
}

// fromFile is what to do without a terminal.
const fromFile = "--passphrase-file FILE"

// prompt reads a line from the terminal, which does not show it; instead is what to do without
// one. Standard input may be a certificate request.
func prompt(text, instead string) (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("no terminal to read the %s from: %s", text, instead)
	}
	defer tty.Close()
	fd := int(tty.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return "", err
	}
	hidden := *was
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
		return "", err
	}
	defer func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }()
	fmt.Fprintf(tty, "%s: ", text)
	line, err := lineOf(tty)
	fmt.Fprintln(tty)
	if err == nil && line == "" {
		err = fmt.Errorf("no %s was typed", text)
	}
	return line, err
}

// lineOf reads to the end of a line and no further.
func lineOf(tty *os.File) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := tty.Read(b); err != nil {
			return "", err
		}
		if b[0] == '\n' || b[0] == '\r' {
			return string(line), nil
		}
		line = append(line, b[0])
	}
}
