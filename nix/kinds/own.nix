# Kinds of need that a cluster defines: an executable or an HTTP service behind the provider, the
# fields of requests, and the delivered files. docs/how-to/issue-your-own-kind.md describes the
# contract.
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    concatStringsSep
    filter
    head
    length
    mapAttrs
    stringLength
    substring
    ;
  inherit (import ../lib) isInvalid optionalAttrs when;
  inherit (import ../language/own.nix) requestOf requested typeOf;
  names = import ../lib/names.nix;
  builtIn = import ./.;

  # The name of a service that the provider of a need knows.
  nameOf = service: need: if need.called != "" then need.called else service.name;

  kinds = clean: removeAttrs clean.providers ([ "store" ] ++ attrNames builtIn);
in
{
  service = { inherit (import ../language/own.nix) needs; };

  # The name of a need in modules, below its service.
  # label :: Need -> String
  label =
    need:
    "${need.kind}-${
      substring (stringLength need.kind + stringLength (names.service need.request.service) + 2) (-1) need.id
    }";

  # The kinds of a topology: those in this folder, and its own in the same form.
  # kinds :: clean topology -> { <kind> = …; }
  kinds =
    clean:
    builtIn
    // mapAttrs (kind: p: {
      settings = { };
      reasons =
        clean:
        concatMap (
          s:
          map (n: "services.${s.name}.needs.${n} needs it") (
            filter (n: s.needs.${n}.kind == kind) (attrNames s.needs)
          )
        ) (attrValues clean.services);
      policy =
        _:
        { values = attrNames p.answer; }
        // optionalAttrs (p.run != "") { inherit (p) run; }
        // optionalAttrs (p.url != "") { inherit (p) url; };
      needs =
        t: host:
        concatMap (
          service:
          map (
            n:
            let
              need = service.needs.${n};
            in
            {
              id = "${kind}-${nameOf service need}-${n}";
              for = service.idOn host.name;
              request = {
                service = names.renamed (service.idOn host.name) (nameOf service need);
                request = requested p.request need.request;
              };
              files = mapAttrs (value: f: {
                inherit value;
                inherit (f) mode;
              }) p.answer;
              owner = service.user;
              renew = {
                atPercent = 66;
              }
              // optionalAttrs (need.rotate > 0) { rotate = need.rotate * 86400; };
              inherit (need) restart dependsOn generation;
              place = "services.${service.name}.needs.${n}";
              what = "need ${n} of service ${service.name}";
            }
          ) (filter (n: service.needs.${n}.kind == kind) (attrNames service.needs))
        ) host.wanting;
    }) (kinds clean);

  check =
    {
      clean,
      t,
      lib,
      ...
    }:
    let
      inherit (lib)
        attribute
        excluded
        faultIf
        missing
        show
        suggest
        unknown
        ;
      own = kinds clean;

      # Needs by the names that providers know.
      taken = import ./taken.nix lib (
        concatMap (
          s:
          map (
            n:
            let
              need = s.needs.${n};
            in
            {
              key = "${need.kind}/${nameOf s need}/${n}";
              place = "services.${s.name}.needs.${n}";
              value = nameOf s need;
            }
          ) (filter (n: !isInvalid s.needs.${n}.kind && !isInvalid s.needs.${n}.called) (attrNames s.needs))
        ) (attrValues clean.services)
      );
      provider =
        kind:
        let
          p = own.${kind};
          place = "providers.${kind}";
          service = names.provider kind;
          near = suggest "kind" kind (attrNames builtIn);
        in
        faultIf (p.run == "" && p.url == "") {
          id = "FL090";
          inherit place;
          problem = "neither an executable nor a service answers for the kind";
          value = show kind;
          remedy =
            if substring 0 12 near == "did you mean" then
              near
            else
              "write run = \"/path\"; or url = \"unix:/path\";";
        }
        ++ when (p.run != "" && p.url != "") (
          excluded "keep one of the two" "${place}.url" "run = ${show p.run}"
        )
        ++ when (p.answer == { } && p.run + p.url != "") (
          missing place "answer" "write answer = { password = { }; }; with the names of what is delivered"
        )
        ++ faultIf (length p.hosts > 1) {
          id = "FL092";
          place = "${place}.hosts";
          problem = "two hosts would act at the same time, for they do not know what the other's executable or service does: found";
          value = concatStringsSep ", " p.hosts;
          remedy = "choose one: ${place}.hosts = [ ${show (head p.hosts)} ];";
        }
        ++ faultIf (clean.services ? ${service}) {
          id = "FL005";
          place = "services.${service}";
          problem = "reserved name";
          value = show service;
          remedy = "choose another name for this service, or for the kind ${kind}";
        }
        ++ concatMap (
          n:
          let
            f = p.request.${n};
          in
          when (f.default != null) (
            (typeOf f).faults "${place}.request.${attribute n}.default" f.default
          )
        ) (attrNames p.request);
    in
    {
      top = concatMap provider (attrNames own);

      service =
        n: s:
        concatMap (
          need:
          let
            of = s.needs.${need};
            place = "services.${n}.needs.${need}";
            long = stringLength of.kind + stringLength (nameOf s of) + stringLength need;
            on = t.services.${n}.hosts;
          in
          if !own ? ${of.kind} then
            unknown "FL091" "kind of your own" own "${place}.kind" [ of.kind ]
          else
            (requestOf of.kind own.${of.kind}.request).faults "${place}.request" of.request
            ++ faultIf (long > 61) {
              id = "FL025";
              inherit place;
              problem = "names of kind, service and need together have at most 61 characters, these";
              value = toString long;
              remedy = "shorten one of them";
            }
            ++ taken place
            ++ faultIf (of.rotate > 0 && s.scope == "cluster" && length on > 1) {
              id = "FL063";
              place = "${place}.rotate";
              problem = "the secret is that of several hosts, where one alone would have the new one:";
              value = concatStringsSep ", " on;
              remedy = "take rotate out and raise ${place}.generation, or give each host a secret with services.${n}.scope = \"node\";";
            }
        ) (attrNames s.needs);
    };
}
