# A value that throws is reported with its place, and hides no other fault.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.address = throw "no address yet";
  hosts.beta.users = [
    "ann"
    (throw "who?")
  ];
  hosts.beta.callers.node = throw "who else?";
  hosts.gamma = throw "not today";
  services.wiki.sso =
    assert 1 == 2;
    {
      mode = "oidc";
    };
  services.blog = {
    host = "betta";
    port = 1;
  };
  users = throw "nobody";
  hostGroups.eu = throw "no such place";
  trust.roots = [ (throw "no root") ];
}
