# Tokens for repositories at forges that are services of the cluster.
let
  inherit (builtins) filter match stringLength;
  inherit (import ../language/types) named of;
  inherit (import ../language/git.nix) forge token;
  inherit (import ../lib) isInvalid sorted;
  accounts = import ./account.nix {
    kind = "git";
    needed = "git";
    what = "token";
    servers = "forges";
    inherit called;
  };

  # The account of a token at its forge.
  called =
    service: n: token:
    if token.called != "" then token.called else "florete-${service}-${n}";
in
{
  doc = "Makes tokens for Git repositories at forges of the cluster.";
  port = 11; # 10 would be the default port of forwarders
  alone = "each would make tokens of its own, and end those of the others";
  settings.forges = of "Forges, by name." (named { what = "forge"; } forge);
  service.git =
    of
      "Tokens for Git repositories that `providers.git` makes, delivered as `needs/git-<service>-<token>/current/credentials`, in the form of Git's credential helpers, and in parts: `url`, `user`, `token`."
      (named { what = "token"; } token);

  policy = t: {
    forges = accounts.policy (
      f: at: if f.kind == "forgejo" then at.upstream else "127.0.0.1:23231"
    ) t;
  };

  inherit (accounts) reasons label;

  needs = accounts.needs (
    _: token: account: {
      request = {
        forge = token.on;
        repositories = sorted token.repositories;
        lifetime = token.lifetime * 3600;
        inherit account;
        inherit (token) access;
      };
      public = [
        "url"
        "user"
      ];
      secret = [
        "token"
        "credentials"
      ];
      renew.interval = token.lifetime * 300; # four times in the last third
    }
  );

  check = accounts.check {
    server = "forge";
    # Soft Serve is reached over SSH, regardless of the upstream of its service.
    reached = f: _: if f.kind == "forgejo" then "(127\\.|\\[::1]:).*" else ".*";
    at = {
      place = "a loopback address";
      example = "127.0.0.1:PORT";
    };
    unknown = "FL140";
    taken = {
      id = "FL141";
      problem = other: "two tokens would be of one account, for ${other} has it, too:";
    };
    unreached = {
      id = "FL142";
      problem = "the service would have a token of a forge that it may not reach:";
    };
    wrong =
      { clean, lib, ... }:
      let
        inherit (lib) fault show when;
      in
      {
        server = _: _: [ ];
        needed =
          s: n:
          let
            inherit (s.git.${n}) on repositories;
            account = called s.name n s.git.${n};
            plain = r: !isInvalid r && match "[^/]*/[^/]*" r == null;
            place = "services.${s.name}.git.${n}";
            bad = f: fault ({ id = "FL143"; } // f);
          in
          when (repositories == [ ]) [
            (bad {
              inherit place;
              problem = "the token is for no repository:";
              value = "[ ]";
              remedy = "write for example repositories = [ \"infra\" ];";
            })
          ]
          ++ when (s.git.${n}.called == "" && (stringLength account > 40 || match ".*--.*" account != null)) [
            (bad {
              inherit place;
              problem = "names of service and token together have at most 31 characters, and single hyphens, these";
              value = show "${s.name}-${n}";
              remedy = "choose another name for one of them, or write ${place}.called = \"florete-…\";";
            })
          ]
          ++ when (account == clean.providers.git.forges.${on}.user or "") [
            (bad {
              inherit place;
              problem = "the provider itself logs in at the forge by this account:";
              value = show account;
              remedy = "choose another account in called, or for providers.git.forges.${on}.user";
            })
          ]
          ++ when ((clean.providers.git.forges.${on}.kind or "") == "forgejo") (
            map (
              r:
              bad {
                place = "${place}.repositories";
                problem = "repositories of Forgejo and Gitea have an owner, this one has none:";
                value = show r;
                remedy = "write for example \"ops/infra\"";
              }
            ) (filter plain repositories)
          );
      };
  };
}
