"""What LeetCode has loaded before a solution runs, and what LeetCode datasets build their arguments with.

A solution `class Solution: def merge(self, a: Optional[ListNode], ...) -> List[int]` imports none of these names, and a
test `assert is_same_list(candidate(list_node([1, 2])), list_node([2, 1]))` defines none of its own.
"""

LEETCODE_PRELUDE = '''\
import bisect, collections, copy, datetime, functools, heapq, itertools, math, operator, random, re, string
from typing import *
from functools import *
from collections import *
from itertools import *
from heapq import *
from bisect import *
from string import *
from operator import *
from math import *
from builtins import abs, pow

inf = float("inf")


class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right


def list_node(values):
    """A linked list of `values`."""
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head


def tree_node(values):
    """A binary tree of `values`, level by level; None where a child is missing."""
    nodes = [None if value is None else TreeNode(value) for value in values]
    children = iter(nodes[1:])
    for node in nodes:
        if node is not None:
            node.left = next(children, None)
            node.right = next(children, None)
    return nodes[0] if nodes else None


def is_same_list(one, other):
    while one and other and one.val == other.val:
        one, other = one.next, other.next
    return one is None and other is None


def is_same_tree(one, other):
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if one is None and other is None:
            continue
        if one is None or other is None or one.val != other.val:
            return False
        pairs += [(one.left, other.left), (one.right, other.right)]
    return True
'''
