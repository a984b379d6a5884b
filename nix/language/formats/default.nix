# The formats of the language, which restrict the value of an attribute.
let
  inherit (builtins)
    all
    isBool
    isInt
    isList
    isString
    stringLength
    ;
  wrong = (import ../../lib).invalid;

  inherit (import ../types)
    between
    listOf
    matches
    scalar
    ;
  inherit (import ./addresses.nix) isV4;
  inherit (import ../../lib/text.nix) contains;
  constants = import ../../lib/constants.nix;
  inherit (constants.spiffe) groupPattern labelPattern;
  dates = import ../../lib/dates.nix;

  text = {
    want = "a string";
    hint = "write one in double quotes";
    ok = isString;
  };
  string = scalar text;
  # Most strings are names. The empty name does not exist, so wrong values have another replacement.
  strings = listOf (scalar (text // { invalid = wrong.string; }));
  flag = scalar {
    want = "true or false";
    json.type = "boolean";
    hint = "write true, or take it out";
    ok = isBool;
    zero = false;
  };
  name = scalar {
    want = "a name";
    hint = "write one, in double quotes";
    invalid = wrong.string;
    ok = isString;
  };
  # A value that others may read, or a list of them.
  fact =
    let
      single = v: isString v || isInt v || isBool v;
      values = map (type: { inherit type; }) [
        "string"
        "integer"
        "boolean"
      ];
    in
    scalar {
      want = "a string, a whole number, true or false, or a list of these";
      hint = "write the value itself; several that belong together are several facts";
      json.anyOf = values ++ [
        {
          type = "array";
          items.anyOf = values;
        }
      ];
      ok = v: single v || isList v && all single v;
    };
  port = between 1 65535 "a port";
  seconds = between 1 315360000 "seconds";
  date = scalar {
    want = "a date, or a time in UTC";
    hint = "write for example \"2027-01-31\", which is its beginning, or \"2027-01-31T18:00Z\"";
    example = "2027-01-31";
    zero = wrong.number;
    ok = dates.isDate;
    to = dates.seconds;
  };
  timeOfDay = scalar {
    want = "a time of day, 00:00 to 23:59";
    hint = "write for example \"02:30\"";
    example = "02:30";
    invalid = wrong.string;
    ok = matches "([01][0-9]|2[0-3]):[0-5][0-9]";
  };

  instance = scalar {
    want = "a short name: a lower-case letter, then letters, digits and hyphens, 14 characters at most";
    hint = "directories, units and accounts on the host are called florete_<instance>";
    example = "blue";
    ok = matches constants.hostdir.instancePattern;
  };

  word =
    {
      want,
      hint,
      re,
      most ? 4095,
      ...
    }@type:
    scalar (
      {
        ok = v: matches re v && stringLength v <= most;
        # JSON Schema has no POSIX classes.
        json = {
          type = "string";
          maxLength = most;
        }
        // (if contains "[:" re || contains "[]" re then { } else { pattern = "^(${re})$"; });
      }
      // type
    );

  replicas = scalar {
    want = "a number of hosts from 1 to 1000, or \"all\"";
    example = 3;
    json.anyOf = [
      {
        type = "integer";
        minimum = 1;
        maximum = 1000;
      }
      { enum = [ "all" ]; }
    ];
    hint = "write one of these, a number without quotes";
    invalid = wrong.number;
    ok = v: isInt v && v >= 1 && v <= 1000 || v == "all";
  };

  trustDomain = scalar {
    id = "FL004";
    want = "a trust domain";
    hint = "use lower-case DNS labels with dots between them, such as \"demo.flor\"";
    example = "demo.flor";
    ok =
      v:
      matches "${labelPattern}(\\.${labelPattern})*" v
      && stringLength v <= 180
      && !isV4 v;
  };

  clusterName = word {
    id = "FL004";
    want = "a cluster name";
    example = "demo";
    hint = "use lower-case letters, digits and inner hyphens";
    re = labelPattern;
    invalid = "(unnamed)";
  };

  tags = listOf (word {
    want = "a word";
    example = "ssd";
    hint = "use lower-case letters, digits and inner hyphens";
    re = "[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?";
  });

  # A service, also one that does not exist any more.
  serviceName = word {
    id = "FL004";
    want = "the name of a service: a lower-case DNS label of at most 50 characters";
    hint = "write for example \"wiki\"";
    example = "wiki";
    re = labelPattern;
    most = 50;
    invalid = wrong.string;
  };

  groupPath = word {
    id = "FL004";
    want = "a group of hosts";
    hint = "use DNS labels with slashes between them, such as \"eu/fra\"";
    example = "eu/fra";
    re = groupPattern;
  };

  reference = word {
    want = "the name of a file below the provider's directory of files, at most 255 characters";
    hint = "write for example \"outline/smtp-password\"";
    example = "outline/smtp-password";
    re = "[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*";
    most = 255;
  };

  mode = word {
    want = "permissions that let its owner alone change it";
    hint = "write for example \"0400\"";
    example = "0400";
    re = "0[0-7][0145]{2}";
  };

  salt = scalar {
    want = "a random text of 16 to 128 letters, digits and the characters _ . + / = -";
    hint = "print one with: openssl rand -hex 16";
    example = "4f9c0d7e1b8a26353c1e9f70d2b48a61";
    invalid = wrong.string;
    hidden = true;
    ok = matches "[A-Za-z0-9_.+/=-]{16,128}";
  };
in
import ./addresses.nix
// import ./networks.nix
// import ./accounts.nix
// import ./keys.nix
// import ./recipients.nix
// import ./urls.nix
// {
  inherit
    clusterName
    date
    fact
    flag
    groupPath
    groupPattern
    instance
    mode
    name
    port
    reference
    replicas
    salt
    seconds
    serviceName
    string
    strings
    tags
    timeOfDay
    trustDomain
    word
    ;
}
