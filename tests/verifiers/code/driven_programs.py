"""One problem's solutions in the languages that have drivers, for the tests of function calls."""

TWO_SUM = {
    "type": "calls",
    "entry_point": "Solution().twoSum",
    "cases": [{"args": [[2, 7, 11, 15], 9], "expected": [0, 1]}, {"args": [[3, 3], 6], "expected": [0, 1]}],
}
SOLUTIONS = {
    "python": """
class Solution:
    def twoSum(self, nums, target):
        seen = {}
        for index, value in enumerate(nums):
            print(index)
            if target - value in seen:
                return [seen[target - value], index]
            seen[value] = index
""",
    "cpp": """
class Solution {
public:
    vector<int> twoSum(vector<int>& nums, int target) {
        unordered_map<int, int> seen;
        for (int index = 0; index < nums.size(); index++) {
            cout << index << endl;
            if (seen.count(target - nums[index])) return {seen[target - nums[index]], index};
            seen[nums[index]] = index;
        }
        return {};
    }
};
""",
    "java": """
public class Solution {
    public int[] twoSum(int[] nums, int target) {
        Map<Integer, Integer> seen = new HashMap<>();
        for (int index = 0; index < nums.length; index++) {
            System.out.println(index);
            if (seen.containsKey(target - nums[index])) return new int[] {seen.get(target - nums[index]), index};
            seen.put(nums[index], index);
        }
        return new int[0];
    }
}
""",
    "javascript": """
/**
 * @param {number[]} nums
 * @param {number} target
 * @return {number[]}
 */
var twoSum = function(nums, target) {
    const seen = new Map();
    for (let index = 0; index < nums.length; index++) {
        console.log(index);
        if (seen.has(target - nums[index])) return [seen.get(target - nums[index]), index];
        seen.set(nums[index], index);
    }
};
""",
}
"""Each prints to its standard output, which is nobody's reply."""

REVERSE = {
    "type": "calls",
    "entry_point": "Solution().reverseList",
    "signature": {"params": ["ListNode"], "returns": "ListNode"},
    "cases": [{"args": [[1, 2, 3]], "expected": [3, 2, 1]}, {"args": [[]], "expected": []}],
}
REVERSED = {
    "python": """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
class Solution:
    def reverseList(self, head):
        before = None
        while head:
            head.next, before, head = before, head, head.next
        return before
""",
    "cpp": "class Solution { public: ListNode* reverseList(ListNode* head) { ListNode* before = nullptr;"
    " while (head) { ListNode* next = head->next; head->next = before; before = head; head = next; }"
    " return before; } };",
    "java": "class Solution { public ListNode reverseList(ListNode head) { ListNode before = null;"
    " while (head != null) { ListNode next = head.next; head.next = before; before = head; head = next; }"
    " return before; } }",
    "javascript": "var reverseList = head => { let before = null;"
    " while (head) { [head.next, before, head] = [before, head, head.next]; } return before; };",
}
INVERT = {
    "type": "calls",
    "entry_point": "Solution().invertTree",
    "stub": "class Solution:\n    def invertTree(self, root: Optional[TreeNode]) -> Optional[TreeNode]:",
    "cases": [
        {"args": [[4, 2, 7, 1, None, 6]], "expected": [4, 7, 2, None, 6, None, 1]},
        {"args": [[]], "expected": []},
    ],
}
INVERTED = {
    "python": """
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
class Solution:
    def invertTree(self, root):
        if root:
            root.left, root.right = self.invertTree(root.right), self.invertTree(root.left)
        return root
""",
    "cpp": "class Solution { public: TreeNode* invertTree(TreeNode* root) { if (root) {"
    " swap(root->left, root->right); invertTree(root->left); invertTree(root->right); } return root; } };",
    "java": "class Solution { public TreeNode invertTree(TreeNode root) { if (root == null) return null;"
    " TreeNode left = invertTree(root.left); root.left = invertTree(root.right); root.right = left; return root; } }",
    "javascript": "function invertTree(root) { if (root) {"
    " [root.left, root.right] = [invertTree(root.right), invertTree(root.left)]; } return root; }",
}
SORT = {
    "type": "calls",
    "entry_point": "Solution().sortColors",
    "in_place": True,
    "cases": [{"args": [[2, 0, 1]], "expected": [0, 1, 2]}, {"args": [[1]], "expected": [1]}],
}
SORTED = {
    "python": "class Solution:\n    def sortColors(self, nums):\n        nums.sort()",
    "cpp": "class Solution { public: void sortColors(vector<int>& nums) { sort(nums.begin(), nums.end()); } };",
    "java": "class Solution { public void sortColors(int[] nums) { Arrays.sort(nums); } }",
    "javascript": "var sortColors = function(nums) { nums.sort((a, b) => a - b); };",
}
MIXED_TYPES = {
    "type": "calls",
    "entry_point": "describe",
    "cases": [
        {
            "args": ['é\n"x" 𝄞', "c", True, 9007199254740991, 0.5, [[1.5, 2.0], []], [["a"], ["b"]]],
            "expected": ['é\n"x" 𝄞|c|1|9007199254740991|0.5|1.5|b'],
        }
    ],
}
DESCRIBED = {
    "cpp": "vector<string> describe(const string& text, char letter, bool truth, long long large, double half,"
    " vector<vector<double>> rows, const vector<vector<char>>& letters) { ostringstream out;"
    " out << text << '|' << letter << '|' << truth << '|' << large << '|' << half << '|' << rows[0][0]"
    " << '|' << letters[1][0]; return {out.str()}; }",
    "java": "class Describer { static List<String> describe(String text, char letter, boolean truth, long large,"
    " double half, List<List<Double>> rows, char[][] letters) { return List.of(text + '|' + letter + '|'"
    " + (truth ? 1 : 0) + '|' + large + '|' + half + '|' + rows.get(0).get(0) + '|' + letters[1][0]); } }",
    "javascript": "const describe = (text, letter, truth, large, half, rows, letters) =>"
    " [[text, letter, Number(truth), large, half, rows[0][0], letters[1][0]].join('|')];",
}
