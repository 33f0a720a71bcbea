// Checks a checkpoint and proofs with the code of the Go checksum database
// (golang.org/x/mod sumdb/note and sumdb/tlog), of which nothing is ours.
//
// Reads one JSON object on standard input and answers with one sentence:
// exit 0 when all of it holds, 1 when something does not.
package main

import (
	"encoding/json"
	"fmt"
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
		Entry    []byte           `json:"entry"` // when there, the leaf hash is computed here
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
	return fmt.Sprintf("verified: %s at %d, %d inclusion and %d consistency proofs",
		verifier.Name(), size, len(r.Proofs), len(r.Consistency)), nil
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
