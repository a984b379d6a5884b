package kit

import (
	"io"
	"net"
)

// Accept serves each connection to l with serve, and closes it then, until l is closed.
func Accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			serve(conn)
		}()
	}
}

// Echo sends back what a connection sends.
func Echo(conn net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}) // splice(2) has a pipe for each
}
