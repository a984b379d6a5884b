package agefile

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

	"github.com/florete/florete/internal/secretfile"
)

// To holds the values of those command-line flags that tell whether to encrypt a file, and to which
// recipients.
type To struct {
	to           []string
	byPassphrase bool
	passphrase   string // file
}

// Flags adds the flags --seal-to, --passphrase and --passphrase-file to a command. The last
// argument is a phrase for the encrypted content, such as "the key", for the help texts of the
// flags.
func Flags(cmd *cobra.Command, what string) *To {
	s := &To{}
	f := cmd.Flags()
	f.StringArrayVar(&s.to, "seal-to", nil, "encrypt "+what+" with age to this `RECIPIENT`, a public key age1… or an SSH public key; may be repeated")
	f.BoolVar(&s.byPassphrase, "passphrase", false, "encrypt "+what+" with age, by a passphrase that is read from the terminal")
	f.StringVar(&s.passphrase, "passphrase-file", "", "encrypt "+what+" with age, by the passphrase in this `FILE`")
	cmd.MarkFlagsMutuallyExclusive("seal-to", "passphrase", "passphrase-file")
	return s
}

// Given reports whether any of the encryption flags is set.
func (s *To) Given() bool { return len(s.to) > 0 || s.byPassphrase || s.passphrase != "" }

// WorkFactor is the binary logarithm of the scrypt work factor for passphrases. With the default,
// each guess of a passphrase costs a second of processor time and 256 MiB of memory. Each file
// records its own factor, so files with other factors can be opened. Tests set a lower factor.
var WorkFactor = 18

// Recipients returns the recipients that the user selected with the flags. If no flag is set, it
// returns none, and the file is not to be encrypted. With --passphrase, Recipients asks for a new
// passphrase twice on the terminal. The argument is the name of the file, for that question.
func (s *To) Recipients(file string) (all []age.Recipient, err error) {
	for _, text := range s.to {
		r, err := Recipient(text)
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
		if passphrase, err = Prompt("new passphrase of "+file, fromFile); err != nil {
			return nil, err
		}
		var again string
		if again, err = Prompt("the same again", fromFile); err == nil && again != passphrase {
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
	r.SetWorkFactor(WorkFactor)
	return []age.Recipient{r}, nil
}

// Recipient parses a public key of age (age1…) or of SSH (ssh-…).
func Recipient(text string) (age.Recipient, error) {
	if strings.HasPrefix(text, "ssh-") {
		return agessh.ParseRecipient(text)
	}
	return age.ParseX25519Recipient(text)
}

// Opening adds two flags to a command, with which the user selects the age identity or the
// passphrase file that decrypts a file. The names of the flags are the given prefix followed by
// "identity" and "passphrase-file". The returned function returns the identities for a file. If the
// file needs a passphrase and the user selected no passphrase file, the passphrase is asked for on
// the terminal when the file is opened.
func Opening(cmd *cobra.Command, prefix, what string) func(file string) ([]age.Identity, error) {
	identity := cmd.Flags().String(prefix+"identity", "", "`FILE` that contains the age identity or SSH private key that opens "+what)
	passphrase := cmd.Flags().String(prefix+"passphrase-file", "", "`FILE` that contains the passphrase that opens "+what+" (default: ask on the terminal)")
	return func(file string) (all []age.Identity, err error) {
		if *identity != "" {
			if all, err = ReadIdentities(*identity); err != nil {
				return nil, err
			}
		}
		return append(all, passphraseOf{file, *passphrase, prefix}), nil
	}
}

// ReadIdentities reads an identity file, which other accounts must not be able to read.
func ReadIdentities(file string) (all []age.Identity, err error) {
	b, err := secretfile.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if all, err = Identities(b); err != nil {
		return nil, fmt.Errorf("%s: %w, want what age-keygen makes, or an SSH private key", file, err)
	}
	return all, nil
}

// Identities parses the content of an identity file, which is either a list of age identities or
// one SSH private key in PEM.
func Identities(b []byte) ([]age.Identity, error) {
	if !bytes.HasPrefix(b, []byte("-----BEGIN")) {
		return age.ParseIdentities(bytes.NewReader(b))
	}
	i, err := agessh.ParseIdentity(b)
	if err != nil {
		return nil, err
	}
	return []age.Identity{i}, nil
}

// passphraseOf is the identity that opens a file encrypted to a passphrase. Its prompt names the
// file, so that people do not type the passphrase of another file.
type passphraseOf struct{ sealed, file, prefix string }

// Unwrap implements age.Identity. It reads the passphrase file, or asks the user for the
// passphrase, only if the encrypted file needs a passphrase.
func (p passphraseOf) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	if len(stanzas) != 1 || stanzas[0].Type != "scrypt" {
		return nil, errors.New("no passphrase opens it, want the --" + p.prefix + "identity FILE of a key that it is sealed to")
	}
	var passphrase string
	var err error
	if p.file != "" {
		passphrase, err = readPassphrase(p.file)
	} else {
		passphrase, err = Prompt("passphrase of "+p.sealed, fromFile)
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

// fromFile is the option that an error suggests if a prompt has no terminal.
const fromFile = "--passphrase-file FILE"

// Prompt asks for a secret, such as a passphrase, on the terminal (/dev/tty) and returns the line
// that the user types. The typed line is not shown. Prompt does not read standard input, which may
// contain the data to process. If there is no terminal, the error contains the second argument,
// which tells the user what to do. An empty line is an error.
func Prompt(text, instead string) (string, error) {
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

// lineOf reads one line from the terminal and no byte after it.
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
