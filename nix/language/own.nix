# The records of kinds of need that a topology itself defines, and of the needs of these kinds. The
# request of such a need is a record whose fields are defined by the topology.
let
  inherit (builtins)
    attrNames
    filter
    isInt
    isList
    mapAttrs
    match
    replaceStrings
    stringLength
    toJSON
    unsafeDiscardStringContext
    ;
  inherit (import ./types)
    atMost
    attrsOf
    between
    default
    enum
    matches
    named
    of
    record
    required
    scalar
    ;
  inherit (import ./formats)
    flag
    name
    port
    serviceName
    strings
    tags
    unit
    word
    ;

  # JSON that every program can read: no floats, no numbers beyond 2^53, no control characters.
  isText = v: matches "[^[:cntrl:]]*" v && stringLength v <= 1000;
  isNumber = v: isInt v && v >= -9007199254740991 && v <= 9007199254740991;
  text = scalar {
    want = "a text of at most 1000 characters";
    hint = "put it in double quotes";
    ok = isText;
  };
  texts = atMost 32 text;
  values = map (type: { inherit type; }) [
    "string"
    "integer"
    "boolean"
  ];
  single = scalar {
    want = "a text of at most 1000 characters, a whole number, true, false, or a list of texts";
    hint = "see providers.<kind>.request for what it is";
    zero = null;
    json.anyOf = values ++ [
      {
        type = "array";
        items.type = "string";
      }
    ];
    ok = v: isText v || isNumber v || v == true || v == false;
  };
  value = removeAttrs single [ "valid" ] // {
    about = single.about // {
      ok = v: if isList v then texts.faults "" v == [ ] else single.about.ok v;
    };
    faults = place: v: (if isList v then texts else single).faults place v;
    clean = v: if isList v then texts.clean v else single.clean v;
  };

  # "*@example.org" as a regular expression: * matches any text, other characters themselves.
  expression =
    replaceStrings
      [ "\\" "." "[" "(" ")" "+" "?" "{" "|" "^" "$" "*" ]
      [ "\\\\" "\\." "\\[" "\\(" "\\)" "\\+" "\\?" "\\{" "\\|" "\\^" "\\$" ".*" ];

  field = record "a field" {
    type = of "Type of the value. `strings` is a list of texts." (enum [
      "string"
      "integer"
      "boolean"
      "strings"
    ]);
    pattern =
      of "Pattern that a text must match, in which `*` stands for any text: `\"*@example.org\"`. By default any text."
        (word {
          want = "a text with at most two *";
          hint = "write for example \"*@example.org\"";
          example = "*@example.org";
          re = "[^*[:cntrl:]]*(\\*[^*[:cntrl:]]*){0,2}";
          most = 255;
        });
    default =
      default "Value for needs that do not write it. Without a default each need must." null
        value;
  };

  typeOf =
    f:
    let
      like = scalar {
        want = "a text like ${toJSON f.pattern}";
        hint = "write one; * stands for any text";
        ok = v: isText v && match (expression f.pattern) v != null;
      };
      one = if f.pattern == "" then text else like;
    in
    {
      string = one;
      integer = scalar {
        want = "a whole number";
        hint = "write one without quotes";
        ok = isNumber;
      };
      boolean = flag;
      strings = atMost 32 one;
    }
    .${f.type};

  # The request of a need, as a record of the language.
  requestOf =
    kind: fields:
    record "a request of kind ${kind}" (
      mapAttrs (
        _: f: if f.default == null then required "" "…" (typeOf f) else default "" f.default (typeOf f)
      ) fields
    );

  # The request with default values.
  requested =
    fields: request:
    mapAttrs (_: f: f.default) (
      removeAttrs fields (filter (n: fields.${n}.default == null) (attrNames fields))
    )
    // request;

  mode = word {
    want = "permissions that let its owner alone change it";
    hint = "write for example \"0400\"";
    example = "0400";
    re = "0[0-7][0145]{2}";
  };
in
{
  inherit requestOf requested typeOf;

  # The record of providers.<kind>.
  provider =
    named
      {
        what = "kind";
        max = 14; # account names have at most 31, of which florete-provider- takes 17
        reserved = [
          "state"
          "activation"
          "retention"
        ];
      }
      (
        record "a kind of your own" {
          hosts =
            required
              "Host on which it runs: one, because hosts do not know what the executable or service of another one has done."
              "[ \"host\" ]"
              strings;
          requires = of "Capabilities that its host must have." tags;
          port = required "TCP port of the provider on its host." "4650" port;
          run =
            of "Executable on that host that answers a request, with JSON on standard input and output."
              (word {
                want = "an absolute path";
                hint = "write for example \"/usr/local/lib/florete/mailbox\"";
                example = "/usr/local/lib/florete/mailbox";
                re = "(/[A-Za-z0-9_.@+=-]+)+";
                most = 255;
                to = unsafeDiscardStringContext;
              });
          url = of "HTTP service on that host that answers requests by POST, instead of `run`." (word {
            want = "http:// on a loopback address with a port, or unix: and the path of a socket, of at most 107 bytes";
            hint = "write for example \"unix:/run/mailbox.sock\" or \"http://127.0.0.1:8090/mailbox\"";
            example = "unix:/run/mailbox.sock";
            re = "unix:(/[A-Za-z0-9_.@+=-]+)+|http://(127\\.0\\.0\\.1|\\[::1]):([1-9][0-9]{0,3}|[1-5][0-9]{4})(/[A-Za-z0-9_.@+=~/-]*)?";
            most = 112;
          });
          request = of "Values that a need requests, by name." (attrsOf field);
          answer =
            of "Values of an answer, at least one. Hosts receive them as files of these names."
              (
                named
                  {
                    what = "value";
                    reserved = [ "rotation" ];
                  }
                  (
                    record "a value" {
                      mode = default "Permissions of the file." "0400" mode;
                    }
                  )
              );
        }
      );

  needs =
    of
      "Needs of kinds of your own, delivered as `needs/<kind>-<service>-<need>/current/<value>`."
      (
        named { what = "need"; } (
          record "a need" {
            kind =
              required "Kind of provider that answers the need, one of `providers`." "\"mailbox\""
                name;
            called =
              of
                "Service name by which the provider knows the need. By default the name of the service. Write the former name before you rename a service, so that the need keeps what was made for it. Its files stay in `needs/<kind>-<called>-<need>`."
                serviceName;
            request = of "Values that the need requests, as declared in `providers.<kind>.request`." (attrsOf value);
            restart = of "Unit to restart after a delivered value changed." unit;
            generation =
              default "Raise it when a secret may be known to others. Hosts get another one." 1
                (between 1 1000000 "a generation");
            rotate = default "Days after which the host requests another secret. 0 means never." 0 (
              between 0 3650 "days"
            );
            dependsOn = of "Needs of this host that must be fulfilled first." strings;
          }
        )
      );
}
