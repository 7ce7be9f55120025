//go:build linux && !portable

package main

import (
	"encoding"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stillwater-rpc/stillwater/hw/nic"
)

// document is what a person reads instead of the code.
const document = "../../docs/cli.md"

// TestDocument finds a section for every command, in it every flag of its own and its example, and a line for every key of JSON.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	eachCommand(func(cmd *cobra.Command) {
		body, found := sections["`"+cmd.CommandPath()+"`"]
		if !found {
			t.Errorf("no section of %q", cmd.CommandPath())
			return
		}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(body, "`--"+f.Name) {
				t.Errorf("%s: --%s is not described", cmd.CommandPath(), f.Name)
			}
		})
		if cmd.Example != "" && !strings.Contains(body, "\n    stillwater ") {
			t.Errorf("%s: no example", cmd.CommandPath())
		}
	})
	for schema, data := range map[string][]any{
		schemaServe: {serveReady{}, serveStats{}},
		schemaCall: {callPlace{}, struct {
			Calls []callResult `json:"calls"`
		}{}},
		schemaBench: {benchData{}},
		schemaStatus: {struct {
			Interfaces []interfaceStatus `json:"interfaces"`
		}{}},
		schemaLoad:      {attachedData{}, detachedData{}},
		schemaAttach:    {attachedData{}},
		schemaDetach:    {detachData{}},
		schemaClean:     {cleanData{}},
		schemaVersion:   {versionData{}},
		schemaNIC:       {nic.Status{}},
		schemaSteer:     {steerData{}},
		schemaDoctor:    {doctorData{}},
		schemaSimFaults: {faultsData{}},
		schemaSim:       {simPoint{}},
	} {
		if !strings.Contains(string(text), "`"+schema+"`") {
			t.Errorf("schema %s is not described", schema)
		}
		keys := map[string]bool{}
		for _, part := range data {
			jsonKeys(reflect.TypeOf(part), keys)
		}
		if len(keys) == 0 {
			t.Errorf("schema %s has no keys", schema)
		}
		for key := range keys {
			if !strings.Contains(string(text), "`"+key+"`") {
				t.Errorf("schema %s: key %s is not described", schema, key)
			}
		}
	}
}

// jsonKeys collects the keys that a type has in JSON, at all depths.
func jsonKeys(of reflect.Type, into map[string]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || reflect.PointerTo(of).Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if name != "" {
			into[name] = true
		}
		jsonKeys(field.Type, into)
	}
}

// TestKeysCarryUnits holds the keys that measure something to their unit, so that nobody has to guess it.
func TestKeysCarryUnits(t *testing.T) {
	keys := map[string]bool{}
	for _, data := range []any{serveStats{}, callResult{}, benchData{}, simPoint{}} {
		jsonKeys(reflect.TypeOf(data), keys)
	}
	for key := range keys {
		for _, measure := range []string{"latency", "lateness", "delay", "duration", "uptime", "elapsed"} {
			inHistograms := key == "latency" || key == "lateness"
			if strings.Contains(key, measure) && !strings.Contains(key, "_ns") && !inHistograms {
				t.Errorf("key %s measures a time and does not say in which unit", key)
			}
		}
	}
}
