# The type of the ID tells a user from a service of the same name.
{ base, merge, ... }:
merge base {
  users.wiki.roles = [ "reader" ];
  hosts.beta.users = [
    "ann"
    "wiki"
  ];
  expect = [
    {
      who = "ann";
      reaches = [ "wiki" ];
    }
    {
      who = "user/wiki";
      reaches = [ "wiki" ];
    }
    {
      who = "service/wiki";
      not = [ "wiki" ];
    }
  ];
}
