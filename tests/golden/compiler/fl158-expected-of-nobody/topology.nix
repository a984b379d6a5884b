# Names of nobody, of several, and of an ID that does not exist, and an entry that expects nothing.
{ base, merge, ... }:
merge base {
  providers.config.hosts = [ "alpha" ];
  users.wiki.roles = [ "reader" ];
  hosts.alpha.roles = [ "operator" ];
  hosts.beta.users = [
    "ann"
    "wiki"
  ];
  expect = [
    {
      who = "anne";
      reaches = [ "wiki" ];
    }
    {
      who = "wiki";
      not = [ "wiki" ];
    }
    {
      who = "node/ann";
      not = [ "wiki" ];
    }
    {
      who = "ann";
    }
    {
      who = "florete-control";
      not = [ "wiki" ];
    }
    {
      who = "ann";
      reaches = [ "wikis" ];
    }
  ];
}
