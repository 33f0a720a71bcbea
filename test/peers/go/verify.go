// Verifies a checkpoint and proofs with the code of the Go checksum database
// (golang.org/x/mod sumdb/note and sumdb/tlog), which is independent of ours.
// On request it reads the tiles of a running board over HTTP and makes the
// proofs itself. tlog.TileHashReader compares tiles with the root, but Debian's
// release does not compare all of them, so each proof is verified again.
//
// Reads one JSON object on standard input and answers with one sentence:
// exit code 0 if everything verifies, otherwise 1.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type request struct {
	Vkey       string `json:"vkey"`
	Checkpoint string `json:"checkpoint"`
	Proofs     []struct {
		Index    int64            `json:"index"`
		Entry    []byte           `json:"entry"` // if present, the leaf hash is computed here
		LeafHash tlog.Hash        `json:"leaf_hash"`
		Path     tlog.RecordProof `json:"path"`
	} `json:"proofs"`
	Consistency []struct {
		From     int64          `json:"from"`
		FromRoot tlog.Hash      `json:"from_root"`
		To       int64          `json:"to"`
		ToRoot   tlog.Hash      `json:"to_root"`
		Path     tlog.TreeProof `json:"path"`
	} `json:"consistency"`
	Tiles *struct {
		URL     string  `json:"url"` // the prefix of the log, without a trailing slash
		Entries []int64 `json:"entries"`
		Heads   []struct {
			Size int64     `json:"size"`
			Root tlog.Hash `json:"root"`
		} `json:"heads"`
	} `json:"tiles"`
}

func main() {
	sentence, err := check()
	if err != nil {
		fmt.Println("refused:", err)
		os.Exit(1)
	}
	fmt.Println(sentence)
}

func check() (string, error) {
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return "", fmt.Errorf("the request cannot be read: %w", err)
	}
	verifier, err := note.NewVerifier(r.Vkey)
	if err != nil {
		return "", fmt.Errorf("vkey: %w", err)
	}
	open, err := note.Open([]byte(r.Checkpoint), note.VerifierList(verifier))
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	size, root, err := parse(open.Text, verifier.Name())
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	for _, p := range r.Proofs {
		leaf := p.LeafHash
		if p.Entry != nil {
			leaf = tlog.RecordHash(p.Entry)
		}
		if err := tlog.CheckRecord(p.Path, size, root, p.Index, leaf); err != nil {
			return "", fmt.Errorf("inclusion of leaf %d in %d: %w", p.Index, size, err)
		}
	}
	for _, c := range r.Consistency {
		if c.To == size && c.ToRoot != root {
			return "", fmt.Errorf("consistency to %d: not the root of the checkpoint", c.To)
		}
		if err := tlog.CheckTree(c.Path, c.To, c.ToRoot, c.From, c.FromRoot); err != nil {
			return "", fmt.Errorf("consistency of %d with %d: %w", c.From, c.To, err)
		}
	}
	if r.Tiles == nil {
		return fmt.Sprintf("verified: %s at %d, %d inclusion and %d consistency proofs",
			verifier.Name(), size, len(r.Proofs), len(r.Consistency)), nil
	}
	board := &board{url: r.Tiles.URL}
	hashes := tlog.TileHashReader(tlog.Tree{N: size, Hash: root}, board)
	for _, n := range r.Tiles.Entries {
		if err := proveEntry(board, hashes, size, root, n); err != nil {
			return "", fmt.Errorf("entry %d by tiles: %w", n, err)
		}
	}
	for _, head := range r.Tiles.Heads {
		path, err := tlog.ProveTree(size, head.Size, hashes)
		if err == nil {
			err = tlog.CheckTree(path, size, root, head.Size, head.Root)
		}
		if err != nil {
			return "", fmt.Errorf("head of %d by tiles: %w", head.Size, err)
		}
	}
	return fmt.Sprintf("verified: %s at %d, %d entries and %d heads by %d tiles",
		verifier.Name(), size, len(r.Tiles.Entries), len(r.Tiles.Heads), board.verified), nil
}

// proveEntry takes an entry from its bundle and proves it with tiles alone.
func proveEntry(b *board, hashes tlog.HashReader, size int64, root tlog.Hash, n int64) error {
	path, err := tlog.ProveRecord(size, n, hashes)
	if err != nil {
		return err
	}
	entry, err := b.entry(size, n)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(path, size, root, n, tlog.RecordHash(entry))
}

// board is a log under a C2SP tlog-tiles prefix, as a tlog.TileReader.
type board struct {
	url      string
	verified int
}

func (b *board) Height() int { return 8 }

func (b *board) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	for i, t := range tiles {
		bytes, err := b.get(tilePath(t))
		if err != nil {
			return nil, err
		}
		data[i] = bytes
	}
	return data, nil
}

// SaveTiles receives the tiles that match the root.
func (b *board) SaveTiles(tiles []tlog.Tile, data [][]byte) { b.verified += len(tiles) }

// entry n of a log of this size, from the bundle that contains it.
func (b *board) entry(size, n int64) ([]byte, error) {
	width := size - n/256*256
	if width > 256 {
		width = 256
	}
	path := tilePath(tlog.Tile{H: 8, L: 0, N: n / 256, W: int(width)})
	bundle, err := b.get(strings.Replace(path, "tile/0/", "tile/entries/", 1))
	if err != nil {
		return nil, err
	}
	for i := int64(0); ; i++ {
		if len(bundle) < 2 || len(bundle) < 2+int(binary.BigEndian.Uint16(bundle)) {
			return nil, fmt.Errorf("the bundle ends before it")
		}
		end := 2 + int(binary.BigEndian.Uint16(bundle))
		if i == n%256 {
			return bundle[2:end], nil
		}
		bundle = bundle[end:]
	}
}

// tilePath leaves out the height, which C2SP fixes at 8.
func tilePath(t tlog.Tile) string { return strings.Replace(t.Path(), "tile/8/", "tile/", 1) }

func (b *board) get(path string) ([]byte, error) {
	answer, err := http.Get(b.url + "/" + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	bytes, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	return bytes, err
}

// parse reads the three lines of a checkpoint without extensions.
func parse(text, origin string) (size int64, root tlog.Hash, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" || lines[0] != origin {
		return 0, root, fmt.Errorf("not a checkpoint of %s", origin)
	}
	if _, err := fmt.Sscanf(lines[1], "%d", &size); err != nil || fmt.Sprint(size) != lines[1] {
		return 0, root, fmt.Errorf("%q is not a size", lines[1])
	}
	root, err = tlog.ParseHash(lines[2])
	return size, root, err
}
