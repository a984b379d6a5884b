{ base, merge, ... }: merge base {
  roles.reader.services = [ "wikki" ];
  groups.apps = [ "wiki" "blog" ];
}
