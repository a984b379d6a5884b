package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// conn is a connection of the driver and its prepared statements. Only one goroutine at a time may
// use it. It replaces the connections of database/sql, whose additional work, such as contexts,
// takes as long as reading a key.
type conn struct {
	driver.Conn
	made map[string]statement
}

// statement is the interface of the driver's statements. A conn uses it to call the driver
// directly.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// connect makes a connection in the same way as a pool would.
func connect(pool *sql.DB, name string) (*conn, error) {
	c, err := pool.Driver().Open(name)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, made: map[string]statement{}}, nil
}

func (c *conn) prepared(query string) (statement, error) {
	if s, ok := c.made[query]; ok {
		return s, nil
	}
	made, err := c.Prepare(query)
	if err != nil {
		return nil, err
	}
	s, ok := made.(statement)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's statements are %T", made), made.Close())
	}
	c.made[query] = s
	return s, nil
}

func (c *conn) exec(query string, args ...any) error {
	s, err := c.prepared(query)
	if err != nil {
		return err
	}
	values, err := named(args)
	if err == nil {
		_, err = s.ExecContext(context.Background(), values)
	}
	return err
}

// rows calls a function with each row that a query returns.
func (c *conn) rows(query string, args []any, each func([]driver.Value)) (err error) {
	s, err := c.prepared(query)
	if err != nil {
		return err
	}
	values, err := named(args)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), values)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		each(row)
	}
}

// row returns the only row that a query returns. If the query returns no row, the error is
// sql.ErrNoRows.
func (c *conn) row(query string, args ...any) (row []driver.Value, err error) {
	err = c.rows(query, args, func(r []driver.Value) { row = r })
	if err == nil && row == nil {
		err = sql.ErrNoRows
	}
	return row, err
}

// integers returns the only row that a query returns. All columns of the row must be integers.
func (c *conn) integers(query string, args ...any) (all []int64, err error) {
	row, err := c.row(query, args...)
	for _, v := range row {
		n, ok := v.(int64)
		if !ok {
			return nil, fmt.Errorf("%s: %v, want integers", query, row)
		}
		all = append(all, n)
	}
	return all, err
}

func named(args []any) ([]driver.NamedValue, error) {
	all := make([]driver.NamedValue, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, err
		}
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return all, nil
}

// Close closes the connection and its statements.
func (c *conn) Close() (err error) {
	for _, s := range c.made {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, c.Conn.Close())
}
