// Keys: unique, named as their C++ enumerator wants it, with one kind of default, which is one of the values.
// RUN: not fagen-tblgen -gen-spec-options -I %source/include -DNAME %s 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not fagen-tblgen -gen-spec-options -I %source/include -DTWICE %s 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fagen-tblgen -gen-spec-options -I %source/include -DNONE %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fagen-tblgen -gen-spec-options -I %source/include -DVALUE %s 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not fagen-tblgen -gen-spec-options -I %source/include -DCASE %s 2>&1 | FileCheck %s --check-prefix=CASE
include "fagen/td/SpecOptions.td"

#ifdef NAME
// NAME: [[#@LINE+1]]:5: error: the record of a key must be named <Key>Option
def Depth : Option<"depth", "schedule", IntegerType, "doc"> { let Default = "1"; }
#endif
#ifdef TWICE
// TWICE: [[#@LINE+1]]:5: error: key 'stages' is declared twice
def DepthOption : Option<"stages", "schedule", IntegerType, "doc"> { let Default = "1"; }
#endif
#ifdef NONE
// NONE: [[#@LINE+1]]:5: error: a key needs exactly one of Default, DefaultDoc and Required
def DepthOption : Option<"depth", "schedule", IntegerType, "doc">;
#endif
#ifdef VALUE
// VALUE: [[#@LINE+1]]:5: error: default 'best' is none of the key's values
def DepthOption : EnumOption<"depth", "schedule", MaskEnum, "doc", [Value<MaskNone, "doc">]> { let Default = "best"; }
#endif
#ifdef CASE
// CASE: [[#@LINE+1]]:5: error: value 'tma' is not a case of 'Mask'
def DepthOption : EnumOption<"depth", "schedule", MaskEnum, "doc", [Value<CopyTma, "doc">]> { let Default = "tma"; }
#endif
