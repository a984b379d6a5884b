# A role that nobody holds reaches no document.
{ base, merge, ... }: {
  after = merge base {
    serial = 2;
    roles.spare.services = [ "wiki" ];
  };
}
